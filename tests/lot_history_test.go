package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/workflows"
)

// TestHistoryOfAHundredNodesIsSmall: the lot's own workflow, whose nodes end
// one by one, as they do when their machines take minutes. The nodes' runs do
// nothing here but wait.
func TestHistoryOfAHundredNodesIsSmall(t *testing.T) {
	t.Parallel()
	const nodes, apart = 100, 200 * time.Millisecond
	s := newStack(t, lab.Options{Servers: 1})
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

	first := s.inputs(noDigest)[0]
	var inputs []run.NodeInput
	for i := range nodes {
		in := first
		in.Node.Name, in.Node.ServerID = fmt.Sprintf("node-%d", i+1), fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		inputs = append(inputs, in)
	}
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
	t.Logf("%d events, %d bytes", info.GetHistoryLength(), info.GetHistorySizeBytes())
	require.LessOrEqual(t, info.GetHistoryLength(), int64(700), "events of a lot of %d", nodes)
}
