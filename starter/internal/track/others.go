package track

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/run"
)

// otherMemory is a node that the lot's run leaves alone, and what is known of it.
type otherMemory struct {
	run.Other
	nodeMemory
}

// lookAtOthers looks at the nodes that an earlier run of the lot has left, until
// their runs have ended.
func (t *Tracker) lookAtOthers(ctx context.Context) error {
	g, looking := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for _, m := range t.othersDue() {
		g.Go(func() (err error) {
			m.seen, m.told, err = t.other(looking, m)
			m.look = t.look + 1
			return err
		})
	}
	return g.Wait()
}

// othersDue gives all of them at first, and then of those whose runs are open the
// ones that were not looked at for the longest.
func (t *Tracker) othersDue() []*otherMemory {
	var due, open []*otherMemory
	for i := range t.others {
		switch m := &t.others[i]; {
		case m.look == 0:
			due = append(due, m)
		case !m.told || !m.seen.State.Final():
			open = append(open, m)
		}
	}
	slices.SortStableFunc(open, func(a, b *otherMemory) int { return cmp.Compare(a.look, b.look) })
	return append(due, open[:min(len(open), nodesPerLook)]...)
}

// other looks at such a node by the run that it had. What Temporal no longer
// keeps is told as the lot's run was told of it.
func (t *Tracker) other(ctx context.Context, m *otherMemory) (Node, bool, error) {
	n := Node{Node: m.Node, WorkflowID: m.Node.ID(), RunID: m.RunID, State: m.State, Phase: m.Phase, Reason: m.Reason, Earlier: true}
	if m.RunID == "" {
		return n, true, nil
	}
	d, newer, err := t.describeNode(ctx, n.WorkflowID, func(r nodeRun) bool { return r.runID == m.RunID })
	if err != nil || d == nil {
		if d == nil && !n.State.Final() { // Temporal keeps every run that is open
			n.State, n.Reason = run.Aborted, "its run has ended since, and Temporal no longer keeps how"
			n.Remedy = run.RemedyOfUnknown(m.Node)
		}
		return n, true, cannotLookAt(m.Node, err)
	}
	answered := t.read(ctx, &n, d, &m.nodeMemory)
	n.Newer = newer
	return n, answered, nil
}

// maxLeftReason bounds what a lot's input tells of a node that is left alone, in
// bytes: its own run has the whole reason.
const maxLeftReason = 200

// Named is the lot without the nodes that its run leaves alone.
func (l Lot) Named() Lot {
	nodes := l.Nodes
	l.Nodes = nil
	for _, n := range nodes {
		if !n.Earlier {
			l.Nodes = append(l.Nodes, n)
		}
	}
	return l
}

// Others gives the nodes of a lot for a run of it that leaves them alone: those
// that it does not name.
func (l Lot) Others(named []run.NodeInput) []run.Other {
	in := run.LotInput{Nodes: named}
	for _, n := range l.Nodes {
		in.Others = append(in.Others, run.Other{Node: n.Node.Identity(), RunID: n.RunID, State: n.State, Phase: n.Phase, Reason: clip.End(n.Reason, maxLeftReason)})
	}
	return in.LeftAlone()
}
