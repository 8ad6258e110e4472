package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/internal/throttle"
	"github.com/ironlot/ironlot/starter/internal/live"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

const (
	lookEvery = time.Second
	// pausePerLook is how much longer than a look the pause after it is.
	pausePerLook = 4
	// longestPause bounds that: a look may have hung with the network.
	longestPause = 15 * time.Second
	// deafFor is how long Temporal may be out of reach while a lot is
	// followed. The runs themselves do not mind.
	deafFor = 2 * time.Minute
)

// follow shows a lot until every node is Ready or needs a person, then how
// it went. The part of the lot that was asked for is waited for, and makes the exit
// code. When ctx ends, or the person leaves the screen, the runs go on.
func (a *app) follow(ctx context.Context, tracker looker, lotName, address string, part func(track.Lot) track.Lot) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	watcher := a.watcher(ctx, leave)
	l, err := watch(ctx, tracker, watcher, show.Silence{Lot: lotName, Address: address}, part)
	if closed := watcher.Close(); err == nil {
		err = closed
	}
	switch {
	case err == nil:
		if err := a.result(l, address); err != nil {
			return err
		}
		return outcome(part(l))
	case ctx.Err() != nil:
		_, _ = fmt.Fprintf(a.notes(), "\nThe runs go on. Come back with `starter status %s --watch`.\n", lotName)
		return &exitError{code: exitInterrupted}
	case errors.Is(err, errDeaf):
		return &exitError{exitUnreachable, fmt.Errorf("%s; the runs go on, come back with `starter status %s --watch`", temporal.Plain(err), lotName)}
	default:
		return err
	}
}

// errDeaf says that Temporal has not answered for too long.
var errDeaf = errors.New("no answer of use from Temporal any more")

// looker looks at a lot.
type looker interface {
	Look(ctx context.Context) (track.Lot, error)
}

// tracking follows a lot, and why its nodes wait for the provider.
func tracking(c *temporal.Connection, lot string) *track.Tracker {
	return track.New(c.Client, lot).WithQueue(throttle.Queue{Service: c.WorkflowService(), Namespace: c.Namespace})
}

// watch shows the lot again and again until the part of it that matters settles,
// and says so while nobody answers.
func watch(ctx context.Context, tracker looker, watcher show.Watcher, silence show.Silence, part func(track.Lot) track.Lot) (track.Lot, error) {
	silence.Since = time.Now()
	for {
		began := time.Now()
		l, err := tracker.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return l, ctx.Err()
		case errors.As(err, new(*track.NotFoundError)):
			return l, err
		case err != nil && time.Since(silence.Since) > deafFor:
			return l, fmt.Errorf("%w, at %s: %w", errDeaf, silence.Address, err)
		case err != nil:
			silence.Err = err
			if err := watcher.Silent(silence, time.Now()); err != nil {
				return l, err
			}
			began = time.Now() // nobody was kept busy: look again soon
		default:
			silence.Since, silence.Seen = time.Now(), true
			if err := watcher.Show(l, silence.Since); err != nil || part(l).Settled() {
				return l, err
			}
		}
		// A look at a large lot takes its time: it must not be all that
		// Temporal does.
		pause := time.NewTimer(min(max(lookEvery, pausePerLook*time.Since(began)), longestPause))
		select {
		case <-ctx.Done():
			pause.Stop()
			return l, ctx.Err()
		case <-pause.C:
		}
	}
}

// watcher is the right way to show progress here: the whole screen of a
// terminal that can do it, else lines of text or JSON.
func (a *app) watcher(ctx context.Context, leave func()) show.Watcher {
	term, _ := a.env.LookupEnv("TERM")
	_, _, terminal := a.terminal()
	switch {
	case a.structured():
		return &show.Events{Encode: a.encode}
	case !terminal, term == "", term == "dumb":
		return &show.Plain{Out: a.stdout}
	}
	o := live.Options{Out: a.stdout, Env: a.env.Environ(), Color: !a.noColor, Leave: leave}
	if a.stdinTerminal {
		o.In = a.stdin
	}
	return live.Start(ctx, o)
}

// notes takes lines for people, which must not mix with data.
func (a *app) notes() io.Writer {
	if a.structured() {
		return a.stderr
	}
	return a.stdout
}

// result shows how a lot stands: the table, what stopped, where to look.
func (a *app) result(l track.Lot, address string) error {
	webUI := a.webUIOf(address)
	if a.structured() {
		return a.encode(show.ResultOf(l, webUI, time.Now()))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\nlot %s: %s\n", show.Results(l, time.Now(), a.width()), l.Name, show.Counts(l))
	b.WriteString(show.Wrap(show.Stops(l), a.width()))
	b.WriteString(show.Wrap(show.TakenOver(l), a.width()))
	b.WriteString(show.Wrap(show.LeftAlone(l), a.width()))
	b.WriteString(show.Wrap(show.Waits(l), a.width()))
	if l.Lab {
		b.WriteString(show.Simulated + "\n")
	}
	if webUI != "" {
		fmt.Fprintf(&b, "Web UI: %s\n", webUI)
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// width is the terminal's, 0 when stdout is none.
func (a *app) width() int {
	width, _, ok := a.terminal()
	if !ok {
		return 0
	}
	return max(width, 0)
}

// webUIOf gives the Web UI of the Temporal at an address, as far as it is
// known.
func (a *app) webUIOf(address string) string {
	if given, _ := a.webUIGiven(); given != "" {
		return given
	}
	if up, ok := a.up(); ok && sameAddress(up.Address, address) {
		return up.WebUI
	}
	return ""
}

// sameAddress compares host:port, with localhost as 127.0.0.1.
func sameAddress(a, b string) bool {
	normal := func(s string) string {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			return s
		}
		if host == "localhost" {
			host = "127.0.0.1"
		}
		return net.JoinHostPort(host, port)
	}
	return normal(a) == normal(b)
}
