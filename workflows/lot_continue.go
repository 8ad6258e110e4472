package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	// maxStarts bounds how many child workflows one run of the lot's workflow
	// starts: Temporal allows 2,000 that are open.
	maxStarts = 1000
	// maxEvents and maxBytes bound the history of a run; Temporal ends one of
	// 51,200 events or 50 MB. It suggests to continue at 4 MB, which 400 nodes
	// reach while they start: every one of them would have to be told.
	maxEvents = 20_000
	maxBytes  = 20 << 20
)

// mustContinue reports whether the workflow has to continue as new: when nodes
// were added, and before its history gets long. Every node at work is told of
// it, so it is not done sooner than it must.
func (l *lot) mustContinue(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	if l.grown || info.GetCurrentHistoryLength() > maxEvents || info.GetCurrentHistorySize() > maxBytes {
		return true
	}
	last := l.all(func(s run.State) bool { return s != run.Queued })
	return !last && l.started >= maxStarts
}

// continueAsNew ends this run of the workflow in favour of the next. The
// nodes at work learn of it first, for Temporal reports their end to this run
// alone; one that has ended meanwhile is waited for.
func (l *lot) continueAsNew(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return l.starting == 0 }); err != nil {
		return err
	}
	told := map[int]workflow.Future{}
	for i, n := range l.status.Nodes {
		if l.mine[i] {
			told[i] = workflow.SignalExternalWorkflow(ctx, n.WorkflowID, "", run.SignalContinued, nil)
		}
	}
	for i := range l.status.Nodes {
		if future, ok := told[i]; ok && future.Get(ctx, nil) != nil {
			if err := workflow.Await(ctx, func() bool { return !l.mine[i] }); err != nil {
				return err
			}
		}
	}
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	if err := settle(ctx); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, run.WorkflowLot, l.next(workflow.GetInfo(ctx).WorkflowExecution.RunID))
}

// settle lets every coroutine take what has come, so that no signal is lost
// with this run.
func settle(ctx workflow.Context) error {
	last := false
	workflow.Go(ctx, func(workflow.Context) { last = true })
	return workflow.Await(ctx, func() bool { return last })
}

// next is the input of the workflow's next run. What a started node was told
// sealed stays in the node's own history.
func (l *lot) next(runID string) run.LotInput {
	in := l.in
	in.Nodes, in.Common, in.Shared = in.Whole(), run.Node{}, nil
	for i, n := range l.status.Nodes {
		if n.State != run.Queued {
			in.Nodes[i].Sealed = run.Sealed{}
		}
	}
	in.Progress = l.progress(runID)
	return in.Share()
}

// progress is what the next run has to know of the nodes.
func (l *lot) progress(runID string) *run.LotProgress {
	p := &run.LotProgress{
		Runs: []string{runID}, Paused: l.status.Paused, Image: l.status.Image, Waived: l.waived,
		States: map[run.State][]int{}, Reasons: map[int]string{},
	}
	if l.in.Progress != nil {
		p.Runs = append(slices.Clone(l.in.Progress.Runs), runID)
	}
	for i, n := range l.status.Nodes {
		if n.State != run.Queued {
			p.States[n.State] = append(p.States[n.State], i)
		}
		if n.Reason != "" {
			p.Reasons[i] = clip.End(n.Reason, maxSummary)
		}
	}
	return p
}

// restore takes up the progress of the run before.
func (l *lot) restore(p run.LotProgress) {
	l.status.Paused, l.status.Image, l.waived = p.Paused, p.Image, p.Waived
	for state, nodes := range p.States {
		for _, i := range nodes {
			if i >= 0 && i < len(l.status.Nodes) {
				l.status.Nodes[i].State = state
			}
		}
	}
	for i, reason := range p.Reasons {
		if i >= 0 && i < len(l.status.Nodes) {
			l.status.Nodes[i].Reason = reason
		}
	}
}
