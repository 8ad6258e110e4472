package track

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ironlot/ironlot/internal/run"
)

// TestRunsThatAreEndedFromOutside: what happened, what to do, and clocks that
// stand.
func TestRunsThatAreEndedFromOutside(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	const job = "a job may still be at work on the machine; provision it again with `starter provision --batch LOT.YAML --node node-1` when its lot has ended, which stops it first"
	node := run.Node{Lot: "rack-1", Name: "node-1"}
	for name, c := range map[string]struct {
		end    enumspb.WorkflowExecutionStatus
		node   Node
		reason string
		remedy string
	}{
		"terminated": {enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, Node{State: run.Running, Phase: run.Write, Reason: "child workflow execution error"},
			"its run was terminated in Temporal in write", job},
		"terminated before anything was touched": {enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, Node{State: run.Running, Phase: run.Preflight},
			"its run was terminated in Temporal in preflight", run.LeftUntouched.Remedy(node)},
		"terminated while stuck": {enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
			Node{State: run.Stuck, Phase: run.Write, Reason: "the disk fails", Status: &run.Status{State: run.Stuck, Timeline: []run.PhaseRecord{{Phase: run.Write}}}},
			"its run was terminated in Temporal in write, where it was stuck: the disk fails", job},
		"cancelled, nobody told": {enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, Node{State: run.Aborted, Phase: run.Write},
			"its run was cancelled in Temporal in write", run.LeftRescue.Remedy(node)},
		"cancelled, and it told": {enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
			Node{State: run.Aborted, Phase: run.Write, Reason: "aborted in write by cancelling the workflow", Status: &run.Status{State: run.Aborted}},
			"aborted in write by cancelling the workflow", ""},
		"timed out": {enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, Node{State: run.Running, Phase: run.WaitReady},
			"its run was ended in wait-ready by a time limit that somebody has set in Temporal", run.LeftConfigured.Remedy(node)},
		"failed": {enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, Node{State: run.Running, Phase: run.Stage},
			"its run failed in stage in the code of the workflow", job},
	} {
		n := c.node
		n.Node = node
		n.ended(&workflowpb.WorkflowExecutionInfo{Status: c.end, CloseTime: timestamppb.New(at)})
		require.Equal(t, run.Aborted, n.State, name)
		require.Equal(t, c.reason, n.Reason, name)
		require.Equal(t, c.remedy, n.Remedy, name)
		if n.Status != nil && n.Status.State == run.Stuck {
			require.Equal(t, at, n.Status.Ended, name)
			require.Equal(t, at, n.Status.Timeline[0].Ended, name)
			require.True(t, c.node.Status.Timeline[0].Ended.IsZero(), "what the run told stays as it is")
		}
	}
	n := Node{State: run.Running}
	n.ended(&workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING})
	require.Equal(t, Node{State: run.Running}, n)
}
