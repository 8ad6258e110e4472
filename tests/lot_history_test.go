package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/workflows"
)

// TestHistoryOfAHundredNodesIsSmall: that of the lot's own workflow, whose nodes end
// one by one, as they do when their machines take minutes. The nodes' runs do
// nothing here but wait.
func TestHistoryOfAHundredNodesIsSmall(t *testing.T) {
	t.Parallel()
	const nodes, apart = 100, 200 * time.Millisecond
	s := newStack(t, lab.Options{Servers: 1})
	waitingNodes(t, s, apart)
	inputs := manyInputs(s, nodes)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := s.startLot(inputs)
	var status run.LotStatus
	require.NoError(t, r.Get(ctx, &status))
	for _, n := range status.Nodes {
		require.Equal(t, run.Ready, n.State, n.Name)
	}
	d, err := s.client.DescribeWorkflow(t.Context(), r.GetID(), "")
	require.NoError(t, err)
	info := d.RawResponse.GetWorkflowExecutionInfo()
	require.Equal(t, r.GetRunID(), info.GetExecution().GetRunId(), "one run holds the whole lot")
	kinds := map[enumspb.EventType]int{}
	for it := s.client.GetWorkflowHistory(t.Context(), r.GetID(), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		require.NoError(t, err)
		kinds[e.GetEventType()]++
	}
	t.Logf("%d events, %d bytes: %v", info.GetHistoryLength(), info.GetHistorySizeBytes(), kinds)
	// Each end may wake the lot; the starts share workflow tasks, and the last
	// few may have one each.
	const tasks = nodes + nodes/4
	require.LessOrEqual(t, info.GetHistoryLength(), int64(7*nodes))
	for kind, most := range map[enumspb.EventType]int{
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: 1, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: 1,
		enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: nodes, enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED: nodes,
		enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: nodes, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED: tasks,
		enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED: tasks, enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED: tasks,
		enumspb.EVENT_TYPE_MARKER_RECORDED: nodes / 4,
	} {
		require.LessOrEqual(t, kinds[kind], most, kind)
		delete(kinds, kind)
	}
	require.Empty(t, kinds, "what a lot has no need of")
}

// waitingNodes runs lots whose nodes do nothing but wait: the first one for a
// moment, and each that much longer than the one before.
func waitingNodes(t *testing.T, s *stack, apart time.Duration) {
	t.Helper()
	w := sdk.New(s.client, run.TaskQueue, sdk.Options{})
	w.RegisterWorkflowWithOptions(workflows.ProvisionLot, workflow.RegisterOptions{Name: run.WorkflowLot})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, in run.NodeInput) (run.Status, error) {
		var number int
		if _, err := fmt.Sscanf(in.Node.Name, "node-%d", &number); err != nil {
			return run.Status{}, err
		}
		err := workflow.Sleep(ctx, time.Duration(number)*apart)
		return run.Status{Node: in.Node, State: run.Ready}, err
	}, workflow.RegisterOptions{Name: run.WorkflowNode})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// manyInputs are those of nodes that are alike but for name and server.
func manyInputs(s *stack, nodes int) []run.NodeInput {
	first := s.inputs(noDigest)[0]
	var inputs []run.NodeInput
	for i := range nodes {
		in := first
		in.Node.Name, in.Node.ServerID = fmt.Sprintf("node-%d", i+1), fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		inputs = append(inputs, in)
	}
	return inputs
}

// TestALotLargerThanAMessage: what its nodes are told when they start is more
// than Temporal takes at once, 4 MiB, so that it starts them bit by bit.
func TestALotLargerThanAMessage(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	waitingNodes(t, s, 0)
	inputs := manyInputs(s, 25)
	for i := range inputs {
		inputs[i].Sealed.Config = strings.Repeat("sealed", 50_000)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var status run.LotStatus
	require.NoError(t, s.startLot(inputs).Get(ctx, &status))
	require.Len(t, status.Nodes, len(inputs))
	for _, n := range status.Nodes {
		require.Equal(t, run.Ready, n.State, n.Name)
	}
}
