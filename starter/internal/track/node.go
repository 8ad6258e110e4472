package track

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

// node looks at one node. It reports false when a worker should have
// answered and did not.
func (t *Tracker) node(ctx context.Context, i int, lotOpen bool) (Node, bool, error) {
	in := t.inputs[i].Node
	n := Node{Node: in, WorkflowID: in.ID(), State: run.Queued}
	if i < len(t.status.Nodes) {
		n.State, n.Reason = t.status.Nodes[i].State, t.status.Nodes[i].Reason
	}
	if n.State == run.Refused {
		return n, true, nil
	}
	d, newer, err := t.describeNode(ctx, n.WorkflowID, func(r nodeRun) bool { return t.mine(r.parentRunID) })
	if err != nil {
		return n, false, cannotLookAt(in, err)
	}
	if d == nil {
		if !lotOpen && !n.State.Final() {
			n.State, n.Reason = run.Aborted, "the lot was ended from outside before this node was started"
			n.Remedy = run.LeftUntouched.Remedy(in)
		}
		return n, true, nil
	}
	n.RunID, n.Newer = d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), newer
	return n, t.read(ctx, &n, d, &t.nodes[i]), nil
}

// read reads how a node's run stands into n. It reports false when a worker
// should have answered and did not.
func (t *Tracker) read(ctx context.Context, n *Node, d *workflowservice.DescribeWorkflowExecutionResponse, m *nodeMemory) bool {
	n.attributes(d)
	n.activity(d)
	n.Waits = t.failing(ctx, d)
	status := &run.Status{}
	fresh, answered := t.ask(ctx, d, &m.memory, status)
	if fresh {
		m.status = status
	}
	if answered && m.status != nil {
		n.tell(*m.status)
	}
	n.ended(d.GetWorkflowExecutionInfo())
	return answered || n.State.Final()
}

func cannotLookAt(n run.Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("node %s cannot be looked at: %w", n.Name, err)
}

// describeNode tells what Temporal knows of a node's run that is this lot's own,
// nil when it knows none, and which later run of another lot has the server since.
func (t *Tracker) describeNode(ctx context.Context, id string, is func(nodeRun) bool) (*workflowservice.DescribeWorkflowExecutionResponse, *NewerRun, error) {
	d, err := describe(ctx, t.client, id, "")
	if notFound := new(serviceerror.NotFound); errors.As(err, &notFound) {
		return nil, nil, nil
	}
	if err != nil || is(nodeRunOf(d.GetWorkflowExecutionInfo())) {
		return d, nil, err
	}
	own, later := "", newest{}
	err = list(ctx, t.client, fmt.Sprintf("WorkflowId = '%s'", id), func(info *workflowpb.WorkflowExecutionInfo) bool {
		if r := nodeRunOf(info); is(r) {
			own = r.runID
		} else {
			later.see(r)
		}
		return own == ""
	})
	if err != nil || own == "" {
		return nil, nil, err
	}
	d, err = describe(ctx, t.client, id, own)
	return d, later.of(id, t.lot), err
}

// attributes reads phase and state as the workflow last published them.
func (n *Node) attributes(d *workflowservice.DescribeWorkflowExecutionResponse) {
	n.State = run.Running
	fields := d.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()
	decode := converter.GetDefaultDataConverter()
	var state, phase string
	if p, ok := fields[run.AttrState]; ok && decode.FromPayload(p, &state) == nil && state != "" {
		n.State = run.State(state)
	}
	if p, ok := fields[run.AttrPhase]; ok && decode.FromPayload(p, &phase) == nil {
		n.Phase = run.Phase(phase)
	}
}

// activity reads how the phase at work is doing from its heartbeat.
func (n *Node) activity(d *workflowservice.DescribeWorkflowExecutionResponse) {
	for _, a := range d.GetPendingActivities() {
		if n.Phase != "" && a.GetActivityType().GetName() != string(n.Phase) {
			continue
		}
		n.Attempt, n.Failure = a.GetAttempt(), a.GetLastFailure().GetMessage()
		// Seen without a worker: a phase is cancelled for an abort alone.
		n.Aborting = a.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
		n.turn = a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && a.GetActivityOptions().GetTaskQueue().GetName() == run.ProviderTaskQueue
		var p run.Progress
		if a.GetHeartbeatDetails() != nil && converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &p) == nil {
			n.Progress = &p
		}
	}
}

// explain says why nodes wait in the provider's task queue, when somebody has
// limited it. It is a help: a limit that cannot be looked at is left out.
func (t *Tracker) explain(ctx context.Context, l *Lot) {
	waits := func(n Node) bool { return n.turn && n.State == run.Running }
	if t.queue == nil || !slices.ContainsFunc(l.Nodes, waits) {
		return
	}
	limit, err := t.queue.Read(ctx)
	if err != nil || !limit.Set {
		return
	}
	l.Slowed = limit.String()
	for i := range l.Nodes {
		if waits(l.Nodes[i]) {
			l.Nodes[i].Waits = "waits for its turn to ask the provider, which is limited to " + l.Slowed
		}
	}
}

// tell puts the workflow's own word over what was seen from outside.
func (n *Node) tell(s run.Status) {
	n.Status, n.State, n.Phase = &s, s.State, s.Phase
	n.Aborting = (n.Aborting || s.Aborting) && !s.State.Final()
	n.Reason, n.Remedy = "", ""
	if s.Problem != nil {
		n.Reason = s.Problem.Message
	}
}

// ended covers workflows that were ended from outside. One that was cancelled
// has told how it ended, if a worker could be asked.
func (n *Node) ended(info *workflowpb.WorkflowExecutionInfo) {
	how := outside(info.GetStatus())
	if how == "" || n.Status != nil && n.Status.State.Final() {
		return
	}
	was := n.Reason
	n.Reason, n.Remedy = how.Message(n.Phase), how.Remedy(n.Phase, n.Node)
	if n.State == run.Stuck && n.Status != nil {
		n.Reason += ", where it was stuck: " + was
	}
	n.State, n.Aborting = run.Aborted, false
	n.stop(info.GetCloseTime().AsTime())
}

// stop stops the clocks of a run that could not do it itself.
func (n *Node) stop(at time.Time) {
	if n.Status == nil {
		return
	}
	s := *n.Status
	s.Ended, s.Timeline = at, slices.Clone(s.Timeline)
	if last := len(s.Timeline) - 1; last >= 0 && s.Timeline[last].Ended.IsZero() {
		s.Timeline[last].Ended = at
	}
	n.Status = &s
}

// outside is how a run was ended from outside; empty: it was not.
func outside(s enumspb.WorkflowExecutionStatus) run.Outside {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return run.Terminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return run.Cancelled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return run.TimedOut
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return run.Failed
	default:
		return ""
	}
}
