package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

const (
	lookEvery = time.Second
	// deafFor is how long Temporal may be out of reach while a lot is
	// followed. The runs themselves do not mind.
	deafFor = 2 * time.Minute
)

// follow shows a lot until every node is Ready or needs a person, then how
// it went. When ctx ends the runs go on.
func (a *app) follow(ctx context.Context, tracker *track.Tracker, lotName, address string) error {
	watcher := a.watcher()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	heard := time.Now()
	for {
		l, err := tracker.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return a.interrupted(watcher, lotName)
		case err != nil && time.Since(heard) > deafFor:
			return &exitError{exitUnreachable, fmt.Errorf("no answer from Temporal for %s; the runs go on, come back with `starter status %s --follow`: %w", deafFor, lotName, err)}
		case err == nil:
			heard = time.Now()
			if err := watcher.Show(l, heard); err != nil {
				return err
			}
			if l.Settled() {
				return a.result(l, address)
			}
		}
		select {
		case <-ctx.Done():
			return a.interrupted(watcher, lotName)
		case <-tick.C:
		}
	}
}

func (a *app) interrupted(watcher show.Watcher, lotName string) error {
	_ = watcher.Note("")
	_ = watcher.Note(fmt.Sprintf("The runs go on. Come back with `starter status %s --follow`.", lotName))
	return &exitError{code: exitInterrupted}
}

// watcher is the right way to show progress here.
func (a *app) watcher() show.Watcher {
	if a.json() {
		return &show.JSON{Out: a.stdout, Notes: a.stderr}
	}
	if _, _, ok := a.terminal(); !ok {
		return &show.Plain{Out: a.stdout}
	}
	return &show.Live{Out: a.stdout, Color: !a.noColor, Size: func() (int, int) {
		width, height, ok := a.terminal()
		if !ok || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}}
}

// result shows how a lot stands: the table, what stopped, where to look.
func (a *app) result(l track.Lot, address string) error {
	webUI := a.webUIOf(address)
	if a.json() {
		if err := json.NewEncoder(a.stdout).Encode(show.ResultOf(l, webUI, time.Now())); err != nil {
			return err
		}
		return outcome(l)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\nlot %s: %s\n", show.Results(l, time.Now(), a.width()), l.Name, show.Counts(l))
	b.WriteString(show.Stops(l))
	if l.Held != "" {
		fmt.Fprintf(&b, "\nThe queued nodes do not start: %s. Look after that, or let a paused lot go on with `starter resume %s`.\n", l.Held, l.Name)
	}
	if l.NoWorker {
		b.WriteString("No worker answers, so this may not be all; `starter up` or the worker must run.\n")
	}
	if l.Lab {
		b.WriteString(show.Simulated + "\n")
	}
	if webUI != "" {
		fmt.Fprintf(&b, "Web UI: %s\n", webUI)
	}
	if _, err := fmt.Fprint(a.stdout, b.String()); err != nil {
		return err
	}
	return outcome(l)
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
	if a.webUI != "" {
		return a.webUI
	}
	if url, ok := a.env.LookupEnv("IRONLOT_WEB_UI"); ok && url != "" {
		return url
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
