package workflows

import (
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/run"
)

// ProvisionLot runs a lot's nodes as its rollout says, control planes before
// workers. A stuck node waits for a person and holds up nobody but those that
// wait for a canary, or for the cluster to be bootstrapped. It ends when every
// node has ended, and gives their states.
func ProvisionLot(ctx workflow.Context, in run.LotInput) (run.LotStatus, error) {
	l := newLot(in)
	if err := l.listen(ctx); err != nil {
		return l.status, err
	}
	for !l.done() {
		if l.mustContinue(ctx) {
			if err := l.continueAsNew(ctx); ctx.Err() == nil {
				return l.status, err
			}
			break // cancelled meanwhile
		}
		barred, why := l.rollout().barred()
		for _, i := range barred {
			l.set(i, run.Refused, why)
		}
		if l.done() {
			break
		}
		r := l.rollout()
		for _, i := range r.next() {
			in := l.in.Node(i)
			in.Together = r.together()
			if l.started >= maxStarts || !l.fits(in) {
				break
			}
			l.start(ctx, i, in)
		}
		l.show(ctx)
		l.changed = false
		// A cancelled lot starts nobody any more, and waits for those at work.
		if err := workflow.Await(ctx, func() bool { return l.changed }); err != nil {
			break
		}
		if err := l.bundle(ctx); err != nil {
			break
		}
		l.judge(ctx)
	}
	return l.finish(ctx)
}

type lot struct {
	in        run.LotInput
	status    run.LotStatus
	waived    run.Waiver
	order     order
	index     map[string]int // of a node, by its name
	mine      map[int]bool   // open child workflows of this run
	started   int            // child workflows of this run
	starting  int            // of these, not yet known to have started
	sent      int            // weight of these
	grown     bool           // nodes were added
	cancelled bool
	changed   bool // since the main loop has looked
}

func newLot(in run.LotInput) *lot {
	l := &lot{in: in, status: run.LotStatus{Lot: in.Lot, Others: len(in.LeftAlone())}, index: map[string]int{}, mine: map[int]bool{}}
	nodes := in.Whole()
	l.order = orderOf(nodes)
	for i, n := range nodes {
		l.index[n.Node.Name] = i
		l.status.Nodes = append(l.status.Nodes, run.NodeState{Name: n.Node.Name, WorkflowID: n.Node.ID(), State: run.Queued})
	}
	if in.Progress != nil {
		l.restore(*in.Progress)
	}
	return l
}

func (l *lot) rollout() rollout {
	return rollout{Rollout: l.in.Rollout, nodes: l.status.Nodes, paused: l.status.Paused, waived: l.waived, order: l.order}
}

// judge pauses the lot when its rollout says so.
func (l *lot) judge(ctx workflow.Context) {
	if reason := l.rollout().stops(); reason != "" {
		l.status.Paused = &run.Pause{Reason: reason, At: workflow.Now(ctx), Itself: true}
	}
}

// done reports whether every node has ended.
func (l *lot) done() bool { return l.all(run.State.Final) }

// idle reports whether no run of a node is open.
func (l *lot) idle() bool {
	return l.all(func(s run.State) bool { return s.Final() || s == run.Queued })
}

func (l *lot) all(is func(run.State) bool) bool {
	for i := range l.status.Nodes {
		if !is(l.status.Nodes[i].State) {
			return false
		}
	}
	return true
}

// set notes how a node stands. One that has ended stays so.
func (l *lot) set(i int, state run.State, reason string) {
	if n := &l.status.Nodes[i]; !n.State.Final() {
		n.State, n.Reason, l.changed = state, reason, true
	}
}

// start starts a node's workflow.
func (l *lot) start(ctx workflow.Context, i int, in run.NodeInput) {
	l.set(i, run.Running, "")
	l.started++
	l.starting++
	l.sent += weight(in)
	l.mine[i] = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		l.runNode(ctx, i, in)
		delete(l.mine, i)
		l.changed = true
	})
}

// maxSent bounds the weight of the nodes that are starting: all that one
// workflow task asks for travels in one message, of which Temporal takes 4 MiB.
const maxSent = 2 << 20

// fits reports whether a node may start beside those that are starting.
func (l *lot) fits(in run.NodeInput) bool {
	return l.starting == 0 || l.sent+weight(in) <= maxSent
}

// weight is about how many bytes the start of a node takes: what it is told
// sealed, and no more than 4 KiB of everything else.
func weight(in run.NodeInput) int {
	s := in.Sealed
	return len(s.Config) + len(s.Own) + len(s.Talosconfig) + len(s.Kubeconfig) + 4<<10
}

// runNode runs one node's workflow to its end. The node outlives the lot:
// ending a lot's workflow by force must not cut a disk's write in two.
func (l *lot) runNode(ctx workflow.Context, i int, in run.NodeInput) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            in.Node.ID(),
		TaskQueue:             run.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation:   true,
		StaticSummary:         clip.End(fmt.Sprintf("%s: server %s of lot %s", in.Node.Name, in.Node.ServerName, in.Node.Lot), maxSummary),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(run.AttrLot).ValueSet(in.Node.Lot),
			temporal.NewSearchAttributeKeyKeyword(run.AttrNode).ValueSet(in.Node.Name),
			temporal.NewSearchAttributeKeyKeyword(run.AttrPhase).ValueSet(string(run.Preflight)),
			temporal.NewSearchAttributeKeyKeyword(run.AttrState).ValueSet(string(run.Running))),
	})
	in.LotRun = workflow.GetInfo(ctx).FirstRunID
	child := workflow.ExecuteChildWorkflow(ctx, run.WorkflowNode, in)
	err := child.GetChildWorkflowExecution().Get(ctx, nil)
	l.starting--
	l.sent -= weight(in)
	l.changed = true
	var status run.Status
	if err == nil {
		err = child.Get(ctx, &status)
	}
	state, reason := ended(in.Node, status, err)
	l.set(i, state, reason)
}

// ended is how a node's workflow has ended.
func ended(n run.Node, s run.Status, err error) (run.State, string) {
	switch {
	case err == nil && s.Problem != nil:
		return s.State, s.Problem.Message
	case err == nil:
		return s.State, ""
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		return run.Refused, fmt.Sprintf("another run holds server %s: look at the workflow %s", n.ServerName, n.ID())
	default:
		return run.Aborted, outside(err).Text(n)
	}
}

// outside is how somebody else has ended a node's workflow. Temporal's own text
// names its IDs and says nothing of the server.
func outside(err error) run.Outside {
	var terminated *temporal.TerminatedError
	var timeout *temporal.TimeoutError
	switch {
	case temporal.IsCanceledError(err):
		return run.Cancelled
	case errors.As(err, &terminated):
		return run.Terminated
	case errors.As(err, &timeout):
		return run.TimedOut
	default:
		return run.Failed
	}
}

// finish ends the lot once no node is at work and every handler has answered.
// A cancelled lot cancels the nodes that earlier runs of its workflow have
// started; its own ones are cancelled with it.
func (l *lot) finish(ctx workflow.Context) (run.LotStatus, error) {
	free, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if l.cancelled = ctx.Err() != nil; l.cancelled {
		for i, n := range l.status.Nodes {
			if !l.mine[i] && (n.State == run.Running || n.State == run.Stuck) {
				workflow.RequestCancelExternalWorkflow(free, n.WorkflowID, "")
			}
		}
	}
	err := workflow.Await(free, func() bool { return l.idle() && workflow.AllHandlersFinished(free) })
	l.show(free)
	if err == nil {
		err = ctx.Err()
	}
	return l.status, err
}

// show brings what is told of the lot, and its page in the Web UI, up to date. A
// lot that was cancelled starts nobody, whatever else held its nodes.
func (l *lot) show(ctx workflow.Context) {
	l.status.Held, l.status.Waits = "", nil
	if !l.cancelled {
		r := l.rollout()
		l.status.Held, l.status.Waits = r.held(), r.waits()
	}
	workflow.SetCurrentDetails(ctx, lotDetails(l.status))
}
