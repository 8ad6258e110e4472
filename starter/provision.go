package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

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
nodes of the file are provisioned. Nothing is done to the others: they stay in the
lot as its last run has left them.

Canary, parallel and maxStuck of the lot file's rollout say how the lot is worked
through; pause, resume and add steer it while it is at work.`,
		Args: takes(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.batch == "" {
				return refuse("give `--batch LOT.YAML`", "no lot file is named")
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
	_ = cmd.RegisterFlagCompletionFunc("node", completeNodes)
	return cmd
}

// provision does everything that can fail before it asks, and nothing that
// touches a server before it is told to.
func (a *app) provision(ctx context.Context, o provisionFlags) error {
	p, err := a.prepare(ctx, o.batch, o.nodes)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.dryRun {
		return a.dryRun(ctx, c, p)
	}
	last, err := atRest(ctx, c.Client, p.lot.Name)
	if err != nil {
		return err
	}
	if err := p.besides(last, len(o.nodes) > 0); err != nil {
		return err
	}
	if err := a.agree(ctx, c.Client, p, o.yes); err != nil {
		return err
	}
	if err := unchanged(ctx, c.Client, p.lot.Name, last); err != nil {
		return err
	}
	if err := start(ctx, c.Client, p); err != nil {
		return err
	}
	if o.detach {
		return a.detached(p.lot, c.Address)
	}
	// What was not asked for is no failure of what was.
	return a.follow(ctx, tracking(c, p.lot.Name), p.lot.Name, c.Address, track.Lot.Named)
}

// atRest gives a lot as its last run has left it, without nodes when it had none.
// It refuses one that is at work, and says how what is stuck in it goes on.
func atRest(ctx context.Context, c client.Client, name string) (track.Lot, error) {
	l, err := track.New(c, name).Look(ctx)
	if none := new(track.NotFoundError); errors.As(err, &none) {
		return track.Lot{}, nil
	}
	if err == nil && l.Open {
		err = atWorkAlready(l)
	}
	return l, err
}

// fewStuck is how many stuck nodes a sentence tells of one by one.
const fewStuck = 3

// atWorkAlready refuses to start a lot again that is at work: what is stuck in it
// is named, each with where and why as long as they are few.
func atWorkAlready(l track.Lot) error {
	stuck := l.Stuck()
	var why, retries []string
	for _, n := range stuck[:min(len(stuck), fewStuck)] {
		why = append(why, fmt.Sprintf("%s in %s (%s)", n.Node.Name, n.Phase, clip.End(show.Clean(n.Reason), maxReason)))
		retries = append(retries, fmt.Sprintf("`starter retry %s %s`", l.Name, n.Node.Name))
	}
	switch {
	case len(stuck) == 0:
		return refuse(fmt.Sprintf("look at it with `starter status %[1]s`, add nodes with `starter add %[1]s --batch LOT.YAML`, or give this lot another name", l.Name),
			"lot %s is at work already (workflow %s, run %s), and none of its nodes is stuck", l.Name, run.LotID(l.Name), l.RunID)
	case len(stuck) > fewStuck:
		return refuse(fmt.Sprintf("`starter status %[1]s` says of each what to do, and `starter retry %[1]s --stuck` lets these %[2]d go on", l.Name, len(stuck)),
			"lot %s is at work already, and %d of its %d nodes are stuck: %s", l.Name, len(stuck), len(l.Nodes), names(stuck))
	default:
		return refuse(fmt.Sprintf("`starter status %s` says what to do, and then %s, with --batch LOT.YAML when you have corrected the lot file", l.Name, strings.Join(retries, " and ")),
			"lot %s is at work already, and of its %d nodes %s stuck: %s", l.Name, len(l.Nodes), isOrAre(len(stuck)), strings.Join(why, ", "))
	}
}

// maxReason bounds a reason within a longer sentence, in bytes.
const maxReason = 160

func isOrAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// start starts the lot's workflow.
func start(ctx context.Context, c client.Client, p *prepared) error {
	l := p.lot
	summary := fmt.Sprintf("lot %s: %s", l.Name, count.Of(len(l.Nodes), "server"))
	if l.Lab {
		summary += " (simulated)"
	}
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run.LotID(l.Name), TaskQueue: run.TaskQueue, StaticSummary: summary,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{track.MemoNodes: len(l.Nodes), track.MemoOthers: len(p.in.Others), track.MemoSimulated: l.Lab},
		TypedSearchAttributes:                    sdk.NewSearchAttributes(sdk.NewSearchAttributeKeyKeyword(run.AttrLot).ValueSet(l.Name)),
	}, run.WorkflowLot, p.in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return refuse(fmt.Sprintf("somebody has just started it: look at it with `starter status %s`", l.Name),
			"lot %s is at work already (workflow %s, run %s)", l.Name, run.LotID(l.Name), started.RunId)
	}
	if err != nil {
		return fmt.Errorf("lot %s cannot be started (does the namespace have the search attribute %s?): %w", l.Name, run.AttrLot, err)
	}
	return nil
}

// detached says how to come back to a lot that is not followed.
func (a *app) detached(l *lot.Lot, address string) error {
	if a.structured() {
		return a.encode(done{Lot: l.Name, Done: "provision", Simulated: l.Lab})
	}
	text := fmt.Sprintf("lot %s is started; follow it with `starter status %s --watch`", l.Name, l.Name)
	if webUI := a.webUIOf(address); webUI != "" {
		text += " or at " + webUI
	}
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}
