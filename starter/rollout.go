package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

func (a *app) pauseCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause LOT",
		Short: "Let a lot start no further node",
		Long: `Lets a lot start no further node. Nodes at work go on, and stuck ones can be
retried and aborted. Where no node waits to be started a pause holds up those
alone that are added. A lot also pauses itself, by the rollout of its file.`,
		Args:              takes(1, argLot),
		ValidArgsFunction: a.completeLot,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steerLot(cmd.Context(), args[0], run.UpdatePause, run.PauseRequest{Reason: reason, By: a.who()}, pausedText)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", reasonHelp)
	freeText(cmd, "reason")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "resume LOT",
		Short: "Let a paused lot start nodes again",
		Long: `Lets a paused lot start nodes again. Where the lot has paused itself this
accepts what it was paused for: as many stuck nodes as there are now, or a
canary that was aborted. It pauses itself again with one stuck node more.`,
		Args:              takes(1, argLot),
		ValidArgsFunction: a.completeLot,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steerLot(cmd.Context(), args[0], run.UpdateResume, run.ResumeRequest{Reason: reason}, resumedText)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", reasonHelp)
	freeText(cmd, "reason")
	return cmd
}

func (a *app) addCommand() *cobra.Command {
	o := provisionFlags{}
	cmd := &cobra.Command{
		Use:   "add LOT --batch LOT.YAML",
		Short: "Add nodes to a lot that is at work",
		Long: `Adds to a lot that is at work the nodes of a lot file that it does not have yet:
append them to the lot's own file, or write another file with the lot's name.
Nodes that the lot has already stay as they are. What is erased is shown, and
asked for, as with provision. Nodes that the lot's run leaves alone are added when
--node names them. A lot that has ended is provisioned again.`,
		Args:              takes(1, argLot),
		ValidArgsFunction: a.completeLot,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.batch == "" {
				return refuse("give `--batch LOT.YAML`", "no lot file is named")
			}
			return a.add(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.batch, "batch", "", "the lot file with the nodes to add")
	f.StringSliceVar(&o.nodes, "node", nil, "add these `nodes` of the file alone; may be repeated")
	f.BoolVarP(&o.yes, "yes", "y", false, "erase without asking")
	_ = cmd.RegisterFlagCompletionFunc("batch", lotFiles)
	_ = cmd.RegisterFlagCompletionFunc("node", completeNodes)
	return cmd
}

// add adds the nodes of a lot file that the lot does not have.
func (a *app) add(ctx context.Context, lotName string, o provisionFlags) error {
	p, err := a.prepareFor(ctx, lotName, o.batch, o.nodes)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	now, err := track.New(c.Client, lotName).Look(ctx)
	if err != nil {
		return err
	}
	p.keepNew(now, len(o.nodes) > 0)
	if !now.Open {
		return refuse(againRemedy(o.batch, p.lot.Nodes), "lot %s has ended, so nothing can be added to it", lotName)
	}
	if len(p.in.Nodes) == 0 {
		return refuse("append the nodes to add to the file", "lot %s has every node of %s already", lotName, o.batch)
	}
	if err := a.agree(ctx, c.Client, p, o.yes); err != nil {
		return err
	}
	if err := updateLot(ctx, c.Client, lotName, run.UpdateAdd, p.in); err != nil {
		return err
	}
	return a.said(done{Lot: lotName, Done: run.UpdateAdd, Simulated: now.Lab}, fmt.Sprintf("%s added to lot %[2]s; follow with `starter status %[2]s --watch`", count.Of(len(p.in.Nodes), "node"), lotName))
}

// fewAdded is how many nodes a command names one by one.
const fewAdded = 5

// againRemedy is how nodes come into a lot that has ended: by their names, which
// leaves the lot's others alone.
func againRemedy(batch string, nodes []lot.Node) string {
	text := "`starter provision --batch " + batch
	if n := len(nodes); n == 0 || n > fewAdded {
		return "provision it again with " + text + "`; --node names those to provision when the lot's others are to be left alone"
	}
	for _, n := range nodes {
		text += " --node " + n.Run.Name
	}
	return "provision what is to be added with " + text + "`, which leaves the lot's others alone"
}

// keepNew keeps of a lot file, and of its input, what the lot does not have. What
// its run leaves alone is left alone, unless a person has named it.
func (p *prepared) keepNew(now track.Lot, named bool) {
	has := map[string]bool{}
	for _, n := range now.Nodes {
		has[n.Node.Name] = !n.Earlier || !named
	}
	more := run.LotInput{Lot: p.in.Lot}
	var nodes []lot.Node
	for i, n := range p.lot.Nodes {
		if !has[n.Run.Name] {
			nodes, more.Nodes = append(nodes, n), append(more.Nodes, p.in.Node(i))
		}
	}
	p.lot.Nodes, p.in = nodes, more.Share()
}

// steerLot sends a wish to a lot's workflow, waits until it has taken it, and
// says what comes of it for the nodes as they stand then.
func (a *app) steerLot(ctx context.Context, lotName, update string, request any, text func(lot string, nodes map[run.State]int) string) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	// A large lot takes its time to be looked at, and a pause is urgent.
	l, err := track.Glance(ctx, c.Client, lotName)
	if err != nil {
		return err
	}
	if !l.Open() {
		return refuse("provision it again with `starter provision --batch LOT.YAML`", "%s refused: lot %s has ended and starts no node any more", update, lotName)
	}
	if err := updateLot(ctx, c.Client, lotName, update, request); err != nil {
		return err
	}
	var nodes map[run.State]int // nil: nobody told
	if status, err := track.Ask(ctx, c.Client, l); err == nil {
		nodes = map[run.State]int{}
		for _, n := range status.Nodes {
			nodes[n.State]++
		}
	}
	return a.said(done{Lot: lotName, Done: update, Simulated: l.Simulated}, text(lotName, nodes))
}

// pausedText says what a pause does: nothing to nodes at work, and nothing at all
// when none waits.
func pausedText(lot string, nodes map[run.State]int) string {
	switch queued := nodes[run.Queued]; {
	case nodes == nil:
		return fmt.Sprintf("lot %[1]s starts no further node; `starter resume %[1]s` goes on", lot)
	case queued == 0:
		return fmt.Sprintf("lot %[1]s is paused, but no node was waiting to be started%[2]s; the pause holds up only nodes that are added, until `starter resume %[1]s`", lot, atWork(nodes))
	default:
		return fmt.Sprintf("lot %[1]s starts no further node, and %[2]s in the queue%[3]s; `starter resume %[1]s` goes on", lot, count.Do(queued, "node", "stay"), atWork(nodes))
	}
}

// resumedText says whether a resume lets anything start.
func resumedText(lot string, nodes map[run.State]int) string {
	if nodes != nil && nodes[run.Queued]+nodes[run.Running] == 0 {
		return fmt.Sprintf("lot %[1]s is no longer paused, and no node waits to be started; `starter status %[1]s` shows how it stands", lot)
	}
	return fmt.Sprintf("lot %[1]s goes on; follow it with `starter status %[1]s --watch`", lot)
}

// atWork says that a pause leaves nodes at work alone, and stuck ones too.
func atWork(nodes map[run.State]int) string {
	text := ""
	switch running := nodes[run.Running]; running {
	case 0:
	case 1:
		text = "; the node at work goes on to its end"
	default:
		text = fmt.Sprintf("; the %d nodes at work go on to their end", running)
	}
	if stuck := nodes[run.Stuck]; stuck > 0 {
		text += fmt.Sprintf("; %s stuck can be retried and aborted as before", count.Of(stuck, "node"))
	}
	return text
}

func updateLot(ctx context.Context, c client.Client, lotName, update string, request any) error {
	w := wish{update: update, whose: "lot " + lotName, remedy: func() string { return lotRemedy(ctx, c, lotName, update) }}
	return w.send(ctx, c, run.LotID(lotName), request)
}
