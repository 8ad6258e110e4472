package track

import (
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
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
	d, err := describe(ctx, t.client, n.WorkflowID)
	if notFound := new(serviceerror.NotFound); err != nil && !errors.As(err, &notFound) {
		return n, false, fmt.Errorf("node %s cannot be looked at: %w", in.Name, err)
	}
	if err != nil || !t.mine(d.GetWorkflowExecutionInfo().GetParentExecution().GetRunId()) {
		if !lotOpen && !n.State.Final() {
			n.State, n.Reason = run.Aborted, "the lot ended before this node was started"
		}
		return n, true, nil
	}
	n.RunID = d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	n.attributes(d)
	n.activity(d)
	n.Waits = t.failing(ctx, d)
	m := &t.nodes[i]
	status := &run.Status{}
	fresh, answered := t.ask(ctx, d, &m.memory, status)
	if fresh {
		m.status = status
	}
	if answered && m.status != nil {
		n.tell(*m.status)
	}
	n.ended(d.GetWorkflowExecutionInfo().GetStatus())
	return n, answered || n.State.Final(), nil
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
	n.Reason = ""
	if s.Problem != nil {
		n.Reason = s.Problem.Message
	}
}

// ended covers workflows that were ended from outside.
func (n *Node) ended(s enumspb.WorkflowExecutionStatus) {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return
	default: // cancelled, terminated, timed out, failed
	}
	n.State = run.Aborted
	if n.Reason == "" {
		n.Reason = fmt.Sprintf("the run's workflow was ended from outside (%s) and left the server as it was, maybe with a job at work; "+
			"provisioning the server again takes it over", s)
	}
}
