package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/simulated"
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
	s.claimWrongImage(inputs)
	stuck := s.waitFor(inputs[0].Node.ID(), run.Stuck, run.Stage)
	require.Contains(t, stuck.Problem.Message, wrongDigest)
	require.Contains(t, stuck.Problem.Message, s.fleet.Images().RawSHA256())
	s.abort(inputs[0].Node.ID())
}

// TestNodeAsksTheRunOfItsLot: a lot's run is terminated, and its node goes on
// beside a later run of the lot. That has an image of its own, and only the
// later run's node is held to it.
func TestNodeAsksTheRunOfItsLot(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2})
	s.startWorker()
	s.fleet.Servers()[0].Machine.SetFaults(simulated.Faults{IgnoreReboots: 1})
	inputs := s.inputs(noDigest)
	inputs[0].Node.Timeouts.RescueBoot = 10 * time.Second
	lot := s.startLot(inputs[:1])
	s.waitFor(inputs[0].Node.ID(), run.Running, run.WaitSSH)
	require.NoError(t, s.client.TerminateWorkflow(t.Context(), lot.GetID(), lot.GetRunID(), "test"))
	s.claimWrongImage(inputs[1:])
	claimed := time.Now()

	later := s.waitFor(inputs[1].Node.ID(), run.Stuck, run.Stage)
	require.Contains(t, later.Problem.Message, wrongDigest)
	status := s.result(s.client.GetWorkflow(t.Context(), inputs[0].Node.ID(), ""))
	require.Equal(t, run.Ready, status.State)
	for _, p := range status.Timeline {
		require.False(t, p.Phase == run.Stage && p.Started.Before(claimed), "the later run had no image yet")
	}
	s.abort(inputs[1].Node.ID())
}

// claimWrongImage starts a lot and sets its image to one that no node stages.
func (s *stack) claimWrongImage(inputs []run.NodeInput) {
	s.t.Helper()
	lot := inputs[0].Node.Lot
	start := s.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: run.LotID(lot), TaskQueue: run.TaskQueue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, run.WorkflowLot, run.LotInput{Lot: lot, Nodes: inputs})
	claim, err := s.client.UpdateWithStartWorkflow(s.t.Context(), client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: run.UpdateImage, Args: []any{run.LotImage{RawSHA256: wrongDigest, Node: "node-0"}},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	require.NoError(s.t, err)
	require.NoError(s.t, claim.Get(s.t.Context(), nil))
}
