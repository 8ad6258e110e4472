package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// maxPayload is Temporal's limit for one payload, in bytes; some room is
// left for what goes with it.
const maxPayload = 2<<20 - 64<<10

type provisionFlags struct {
	batch       string
	nodes       []string // these alone; empty: all
	yes, detach bool
	dryRun      bool
}

func (a *app) provisionCommand() *cobra.Command {
	o := provisionFlags{}
	cmd := &cobra.Command{
		Use:   "provision --batch LOT.YAML",
		Short: "Install the servers of a lot",
		Long: `Checks the lot file, shows what is erased on which servers, asks, starts the
runs and follows them. Ctrl-C ends the following alone: the runs go on.

When another run holds one of the servers, nothing is started. A server that
is a live Talos node is not touched either: its run is stuck in preflight,
unless the lot file says "reprovision: true" for it. With --node only the named
nodes of the file are provisioned, and nothing is done to the others.

Canary, parallel and maxStuck of the lot file's rollout say how the lot is worked
through; pause, resume and add steer it while it is at work.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.batch == "" {
				return refuse("give --batch LOT.YAML", "no lot file is named")
			}
			return a.provision(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.batch, "batch", "", "the lot file")
	f.StringSliceVar(&o.nodes, "node", nil, "provision these `nodes` of the lot alone; may be repeated")
	f.BoolVarP(&o.yes, "yes", "y", false, "erase without asking")
	f.BoolVarP(&o.detach, "detach", "d", false, "do not follow the runs")
	f.BoolVar(&o.dryRun, "dry-run", false, "let a worker check every server at the provider, show what would be done, and do nothing")
	_ = cmd.RegisterFlagCompletionFunc("batch", lotFiles)
	return cmd
}

// provision does everything that can fail before it asks, and nothing that
// touches a server before it is told to.
func (a *app) provision(ctx context.Context, o provisionFlags) error {
	l, rendered, err := a.load(ctx, o.batch, o.nodes)
	if err != nil {
		return err
	}
	in, err := a.input(l, rendered)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.dryRun {
		return a.dryRun(ctx, c, l, in, rendered.Warnings)
	}
	if err := free(ctx, c.Client, l); err != nil {
		return err
	}
	if err := a.confirm(ctx, l, rendered.Warnings, o.yes); err != nil {
		return err
	}
	if err := start(ctx, c.Client, l, in); err != nil {
		return err
	}
	if o.detach {
		return a.detached(l, c.Address)
	}
	return a.follow(ctx, track.New(c.Client, l.Name), l.Name, c.Address)
}

// load reads, checks and renders a lot, or the named nodes of it.
func (a *app) load(ctx context.Context, path string, nodes []string) (*lot.Lot, *lot.Rendered, error) {
	l, err := lot.Load(path)
	if err == nil && len(nodes) > 0 {
		err = l.Only(nodes)
	}
	if err != nil {
		return nil, nil, err
	}
	rendered, err := l.Render(ctx)
	return l, rendered, err
}

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
	payload, err := converter.GetDefaultDataConverter().ToPayload(in)
	if err != nil {
		return in, fmt.Errorf("the input of lot %s cannot be encoded: %w", l.Name, err)
	}
	if size := len(payload.GetData()); size > maxPayload {
		return in, refuse("split the lot into several files", "lot %s takes %s with its sealed configs, and Temporal takes %s", l.Name, show.Bytes(int64(size)), show.Bytes(maxPayload))
	}
	return in, nil
}

// free refuses servers that another run holds.
func free(ctx context.Context, c client.Client, l *lot.Lot) error {
	nodes := make([]run.Node, len(l.Nodes))
	for i, n := range l.Nodes {
		nodes[i] = n.Run
	}
	held, err := track.Holders(ctx, c, nodes)
	if err != nil {
		return err
	}
	var problems []error
	for _, h := range held {
		problems = append(problems, refuse(fmt.Sprintf("look at it with `starter status %s`, and wait or abort it", h.Lot),
			"the server of node %s is held by a run of lot %s that started at %s (workflow %s, run %s)",
			h.Node, h.Lot, h.Started.UTC().Format("2006-01-02 15:04:05 MST"), h.WorkflowID, h.RunID))
	}
	return errors.Join(problems...)
}

// confirm shows what is erased and lets a person agree by typing the lot's
// name.
func (a *app) confirm(ctx context.Context, l *lot.Lot, warnings []string, yes bool) error {
	out := a.stdout
	if a.structured() {
		out = a.stderr
	}
	if _, err := fmt.Fprintln(out, show.Plan(l, warnings)); err != nil {
		return err
	}
	if yes {
		return nil
	}
	if !a.stdinTerminal {
		return refuse("give --yes to erase without being asked", "nobody can be asked: standard input is not a terminal")
	}
	_, _ = fmt.Fprintf(out, "Type the lot's name (%s) to erase and install %s: ", l.Name, show.Servers(len(l.Nodes)))
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

// start starts the lot's workflow.
func start(ctx context.Context, c client.Client, l *lot.Lot, in run.LotInput) error {
	summary := fmt.Sprintf("lot %s: %s", l.Name, show.Servers(len(l.Nodes)))
	if l.Lab {
		summary += " (simulated)"
	}
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run.LotID(l.Name), TaskQueue: run.TaskQueue, StaticSummary: summary,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{track.MemoNodes: len(l.Nodes), track.MemoSimulated: l.Lab},
		TypedSearchAttributes:                    sdk.NewSearchAttributes(sdk.NewSearchAttributeKeyKeyword(run.AttrLot).ValueSet(l.Name)),
	}, run.WorkflowLot, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return refuse(fmt.Sprintf("look at it with `starter status %[1]s`, let stuck nodes go on with `starter retry %[1]s NODE`, add nodes with `starter add %[1]s --batch LOT.YAML`, or give this lot another name", l.Name),
			"lot %s is at work already (workflow %s, run %s)", l.Name, run.LotID(l.Name), started.RunId)
	}
	if err != nil {
		return fmt.Errorf("lot %s cannot be started (does the namespace have the search attribute %s?): %w", l.Name, run.AttrLot, err)
	}
	return nil
}

// detached says how to come back to a lot that is not followed.
func (a *app) detached(l *lot.Lot, address string) error {
	out := a.stdout
	if a.structured() {
		out = a.stderr
	}
	text := fmt.Sprintf("lot %s is started; follow it with `starter status %s --watch`", l.Name, l.Name)
	if webUI := a.webUIOf(address); webUI != "" {
		text += " or at " + webUI
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
