package workflows

import (
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/run"
)

// ProvisionLot runs a lot's nodes, at most Parallel at work at once, control
// planes before workers. A stuck node waits for a person and holds up nobody,
// unless it bootstraps the cluster. It ends when every node has
// ended, and gives their states.
func ProvisionLot(ctx workflow.Context, in run.LotInput) (run.LotStatus, error) {
	l := newLot(in)
	if err := workflow.SetQueryHandler(ctx, run.QueryStatus, func() (run.LotStatus, error) { return l.status, nil }); err != nil {
		return l.status, err
	}
	workflow.Go(ctx, l.reports)
	for _, i := range waves(in.Nodes) {
		// A cancelled lot starts nobody any more, and waits for those at work.
		if err := workflow.Await(ctx, func() bool { return l.hasRoom() && !l.turn(i).wait }); err != nil {
			break
		}
		if why := l.turn(i).never; why != "" {
			l.set(i, run.Refused, why)
			continue
		}
		l.set(i, run.Running, "")
		l.running++
		workflow.Go(ctx, func(ctx workflow.Context) { l.runNode(ctx, i) })
	}
	free, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	err := workflow.Await(free, l.idle)
	l.show(ctx)
	if err == nil {
		err = ctx.Err()
	}
	return l.status, err
}

type lot struct {
	in      run.LotInput
	status  run.LotStatus
	running int // child workflows not yet ended, stuck ones included
	index   map[string]int
}

func newLot(in run.LotInput) *lot {
	l := &lot{in: in, status: run.LotStatus{Lot: in.Lot}, index: map[string]int{}}
	for i, n := range in.Nodes {
		l.index[n.Node.Name] = i
		l.status.Nodes = append(l.status.Nodes, run.NodeState{Name: n.Node.Name, WorkflowID: n.Node.ID(), State: run.Queued})
	}
	return l
}

func (l *lot) idle() bool { return l.running == 0 }

// hasRoom reports whether another node may start.
func (l *lot) hasRoom() bool {
	if l.in.Parallel <= 0 {
		return true
	}
	working := 0
	for _, n := range l.status.Nodes {
		if n.State == run.Running {
			working++
		}
	}
	return working < l.in.Parallel
}

// turn says whether a node may start, by what has become of the others.
func (l *lot) turn(i int) turn { return turnOf(l.in.Nodes, l.status.Nodes, i) }

func (l *lot) set(i int, state run.State, reason string) {
	l.status.Nodes[i].State, l.status.Nodes[i].Reason = state, reason
}

// reports takes the nodes' own reports of being stuck and going on.
func (l *lot) reports(ctx workflow.Context) {
	reports := workflow.GetSignalChannel(ctx, run.SignalNodeState)
	for {
		var r run.NodeState
		reports.Receive(ctx, &r)
		i, ok := l.index[r.Name]
		if !ok || l.status.Nodes[i].State.Final() {
			continue
		}
		l.set(i, r.State, r.Reason)
		l.show(ctx)
	}
}

// runNode runs one node's workflow to its end. The node outlives the lot:
// ending a lot's workflow by force must not cut a disk's write in two.
func (l *lot) runNode(ctx workflow.Context, i int) {
	defer func() { l.running-- }()
	in := l.in.Node(i)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            in.Node.ID(),
		TaskQueue:             run.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation:   true,
		StaticSummary:         clip(fmt.Sprintf("%s: server %s of lot %s", in.Node.Name, in.Node.ServerName, in.Node.Lot), maxSummary),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(run.AttrLot).ValueSet(in.Node.Lot),
			temporal.NewSearchAttributeKeyKeyword(run.AttrNode).ValueSet(in.Node.Name)),
	})
	var status run.Status
	err := workflow.ExecuteChildWorkflow(ctx, run.WorkflowNode, in).Get(ctx, &status)
	switch {
	case err == nil && status.Problem != nil:
		l.set(i, status.State, status.Problem.Message)
	case err == nil:
		l.set(i, status.State, "")
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		l.set(i, run.Refused, fmt.Sprintf("another run holds server %s: look at the workflow %s", in.Node.ServerName, in.Node.ID()))
	case temporal.IsCanceledError(err):
		l.set(i, run.Aborted, "the run was cancelled")
	default:
		l.set(i, run.Aborted, "the run ended without a result: "+err.Error())
	}
	l.show(ctx)
}

// show brings the lot's page in the Web UI up to date.
func (l *lot) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, lotDetails(l.status))
}
