package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/size"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// maxPayload is Temporal's limit for one payload, in bytes; some room is
// left for what goes with it.
const maxPayload = 2<<20 - 64<<10

// prepared is a lot file that has been checked, rendered and sealed.
type prepared struct {
	lot      *lot.Lot
	warnings []string
	in       run.LotInput
	index    map[string]int // of a node, by its name
}

// prepare does everything with a lot file, or the named nodes of it, that needs
// no server.
func (a *app) prepare(ctx context.Context, path string, nodes []string) (*prepared, error) {
	l, rendered, err := a.load(ctx, path, nodes)
	if err != nil {
		return nil, err
	}
	in, err := a.input(l, rendered)
	p := &prepared{lot: l, warnings: rendered.Warnings, in: in, index: map[string]int{}}
	for i, n := range in.Nodes {
		p.index[n.Node.Name] = i
	}
	return p, err
}

// prepareFor prepares the file of a lot that is at work, or the named nodes of it.
func (a *app) prepareFor(ctx context.Context, lotName, path string, nodes []string) (*prepared, error) {
	p, err := a.prepare(ctx, path, nodes)
	if err != nil {
		return nil, err
	}
	if p.lot.Name != lotName {
		return nil, refuse("name the lot's own file, or one with its name", "%s is the file of lot %s, not %s", path, p.lot.Name, lotName)
	}
	return p, nil
}

// agree makes sure that nobody else holds the servers, and that a person wants
// them erased.
func (a *app) agree(ctx context.Context, c client.Client, p *prepared, yes bool) error {
	ready, err := free(ctx, c, p.lot)
	if err != nil {
		return err
	}
	return a.confirm(ctx, p.lot, ready, p.warnings, yes)
}

// load reads, checks and renders a lot, or the named nodes of it. With an error
// there are the warnings alone.
func (a *app) load(ctx context.Context, path string, nodes []string) (*lot.Lot, *lot.Rendered, error) {
	l, rendered, err := lot.Check(ctx, path, nodes)
	if err != nil {
		err = &mistaken{err, rendered.Warnings}
	}
	return l, rendered, err
}

// mistaken is what is wrong with a lot file, and what else is to be said of it.
type mistaken struct {
	err      error
	warnings []string
}

func (m *mistaken) Error() string { return m.err.Error() }

func (m *mistaken) Unwrap() error { return m.err }

// input seals the configs and makes the workflow's input.
func (a *app) input(l *lot.Lot, rendered *lot.Rendered) (run.LotInput, error) {
	in := run.LotInput{Lot: l.Name, Rollout: l.Rollout}
	h, err := a.home()
	if err != nil {
		return in, err
	}
	recipients, err := h.Recipients()
	if err != nil {
		return in, err
	}
	in.Nodes, err = rendered.Seal(func(plaintext []byte) (string, error) { return seal.Seal(plaintext, recipients...) })
	if err != nil {
		return in, err
	}
	in = in.Share()
	return in, inOnePayload(in)
}

// inOnePayload refuses a lot that Temporal would not take.
func inOnePayload(in run.LotInput) error {
	payload, err := converter.GetDefaultDataConverter().ToPayload(in)
	if err != nil {
		return fmt.Errorf("the input of lot %s cannot be encoded: %w", in.Lot, err)
	}
	if n := len(payload.GetData()); n > maxPayload {
		return refuse("split the lot into several files", "lot %s takes %s with its sealed configs, and Temporal takes %s", in.Lot, size.Text(n), size.Text(maxPayload))
	}
	return nil
}

// free refuses servers that another run holds, and tells the nodes whose
// server's last run ended Ready.
func free(ctx context.Context, c client.Client, l *lot.Lot) (ready map[string]bool, err error) {
	nodes := make([]run.Node, len(l.Nodes))
	for i, n := range l.Nodes {
		nodes[i] = n.Run
	}
	last, err := track.LookAtServers(ctx, c, nodes)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, h := range last.Held {
		problems = append(problems, refuse(fmt.Sprintf("look at it with `starter status %[1]s %[2]s`, and wait, or end it with `starter abort %[1]s %[2]s`", h.Lot, h.As),
			"the server of node %s is held by the run of node %s of lot %s that started at %s (workflow %s, run %s)",
			h.Node, h.As, h.Lot, h.Started.UTC().Format("2006-01-02 15:04:05 MST"), h.WorkflowID, h.RunID))
	}
	return last.Ready, errors.Join(problems...)
}

// confirm shows what is erased and lets a person agree by typing the lot's
// name.
func (a *app) confirm(ctx context.Context, l *lot.Lot, ready map[string]bool, warnings []string, yes bool) error {
	out := a.stdout
	if a.structured() {
		out = a.stderr
	}
	if _, err := fmt.Fprintln(out, show.Plan(l, ready, warnings, a.width())); err != nil {
		return err
	}
	if yes {
		return nil
	}
	if !a.stdinTerminal {
		return refuse("give --yes to erase without being asked", "nobody can be asked: standard input is not a terminal")
	}
	_, _ = fmt.Fprintf(out, "Type the lot's name (%s) to erase and install %s: ", l.Name, count.Of(len(l.Nodes), "server"))
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out)
		return &exitError{exitInterrupted, errors.New("interrupted; nothing was started")}
	case name := <-typed:
		if name == l.Name {
			return nil
		}
		return refuse("", "that is not the lot's name, so nothing was started")
	}
}
