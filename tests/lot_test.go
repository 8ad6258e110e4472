package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

// noDigest takes the digests out of a lot.
func noDigest(n *run.Node) { n.Image.SHA256, n.Image.RawSHA256 = "", "" }

// TestLotIsRunAgain: the first node's image becomes the lot's, which keeps
// its history short, and a second run leaves Ready nodes alone.
func TestLotIsRunAgain(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2})
	s.startWorker()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	for again := range 2 {
		inputs := s.inputs(noDigest)
		var status run.LotStatus
		require.NoError(t, s.startLot(inputs).Get(ctx, &status), "worker log:\n%s", s.log)
		for i, n := range status.Nodes {
			require.Equal(t, run.Ready, n.State, "%s: %s", n.Name, n.Reason)
			node := s.status(inputs[i].Node.ID())
			require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, s.fleet.Servers()[i].Counters().Reboots)
			if again == 0 {
				d, err := s.client.DescribeWorkflow(ctx, n.WorkflowID, "")
				require.NoError(t, err)
				info := d.RawResponse.GetWorkflowExecutionInfo()
				t.Logf("%s: %d events, %d bytes", n.Name, info.GetHistoryLength(), info.GetHistorySizeBytes())
				require.LessOrEqual(t, info.GetHistoryLength(), int64(90), "events of a happy node")
				require.LessOrEqual(t, info.GetHistorySizeBytes(), int64(60<<10), "bytes of a happy node")
			} else {
				require.Len(t, node.Timeline, 1)
				require.Contains(t, node.Timeline[0].Summary, "left alone")
				require.NotNil(t, node.Facts.Ready)
			}
		}
		if again == 0 {
			require.Equal(t, s.fleet.Images().RawSHA256(), status.Image.RawSHA256)
		}
	}
}

// TestNodeWithOtherBytesThanItsLotIsStuck, with both digests named.
func TestNodeWithOtherBytesThanItsLotIsStuck(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	inputs := s.inputs(noDigest)
	lot := inputs[0].Node.Lot
	start := s.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: run.LotID(lot), TaskQueue: run.TaskQueue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, run.WorkflowLot, run.LotInput{Lot: lot, Nodes: inputs})
	claim, err := s.client.UpdateWithStartWorkflow(t.Context(), client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: run.UpdateImage, Args: []any{run.LotImage{RawSHA256: wrongDigest, Node: "node-0"}},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	require.NoError(t, err)
	require.NoError(t, claim.Get(t.Context(), nil))
	stuck := s.waitFor(inputs[0].Node.ID(), run.Stuck, run.Stage)
	require.Contains(t, stuck.Problem.Message, wrongDigest)
	require.Contains(t, stuck.Problem.Message, s.fleet.Images().RawSHA256())
	s.abort(inputs[0].Node.ID())
}
