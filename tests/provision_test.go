package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

func TestLotOfThreeReachesReady(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{SwapNames: true})
	s.startWorker()
	inputs := s.inputs(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var status run.LotStatus
	require.NoError(t, s.startLot(inputs).Get(ctx, &status), "worker log:\n%s", s.log)
	require.Len(t, status.Nodes, 3)
	for _, n := range status.Nodes {
		require.Equal(t, run.Ready, n.State, "%s: %s", n.Name, n.Reason)
	}
	for i, server := range s.fleet.Servers() {
		node := s.status(inputs[i].Node.ID())
		require.Equal(t, run.Ready, node.State)
		require.Zero(t, node.Rewinds)
		require.Equal(t, s.fleet.Images().RawSHA256(), node.Facts.Staged.RawSHA256)
		require.Equal(t, node.Facts.System.Serial, node.Facts.Written.Serial)
		require.Equal(t, node.Facts.Staged.RawSize, node.Facts.Written.BytesVerified)
		require.NotEmpty(t, node.Facts.Applied.ConfigSHA256)
		require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, server.Counters().Reboots, "no reboot too many")
	}
}

func TestRerunTakesTheGoodRescueBoot(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	inputs := s.inputs(func(n *run.Node) { n.Image.RawSHA256 = wrongDigest })
	first := s.startNode(inputs[0])
	stuck := s.waitFor(first.GetID(), run.Stuck, run.Stage)
	require.Equal(t, "NeedsOperator", stuck.Problem.Class)
	require.Contains(t, stuck.Problem.Message, wrongDigest)
	s.abort(first.GetID())
	require.Equal(t, run.Aborted, s.result(first).State)

	again := s.inputs(nil)
	status := s.result(s.startNode(again[0]))
	require.Equal(t, run.Ready, status.State)
	require.True(t, status.Facts.Rescue.Reused)
	require.Equal(t, 1, s.fleet.Servers()[0].Counters().Reboots["rescue"], "the second run paid no reboot")
}

func TestFreshRescueIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	first := s.startNode(s.inputs(func(n *run.Node) { n.Image.RawSHA256 = wrongDigest })[0])
	s.waitFor(first.GetID(), run.Stuck, run.Stage)
	s.abort(first.GetID())
	s.result(first)

	status := s.result(s.startNode(s.inputs(func(n *run.Node) { n.Rescue.Fresh = true })[0]))
	require.Equal(t, run.Ready, status.State)
	require.False(t, status.Facts.Rescue.Reused)
	require.Len(t, status.Facts.SeenBoots, 1)
	require.Equal(t, 2, s.fleet.Servers()[0].Counters().Reboots["rescue"])
}

func TestSecondRunOnAServerIsRefused(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	inputs := s.inputs(nil)
	s.startNode(inputs[0]) // no worker: it stays where it is
	_, err := s.client.ExecuteWorkflow(t.Context(), startOptions(inputs[0]), run.WorkflowNode, inputs[0])
	require.True(t, isAlreadyStarted(err), "%v", err)
}

func TestPreflightTouchesNothing(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	r := s.startNode(s.inputs(func(n *run.Node) {
		n.ServerName = "somebody-elses"
		n.Image.URL += ".missing"
	})[0])
	stuck := s.waitFor(r.GetID(), run.Stuck, run.Preflight)
	require.Contains(t, stuck.Problem.Message, "somebody-elses")
	require.Contains(t, stuck.Problem.Message, "404")
	require.Contains(t, stuck.Problem.Erased, "nothing")
	s.abort(r.GetID())
	require.Equal(t, run.Aborted, s.result(r).State)
	require.Empty(t, s.fleet.Servers()[0].Counters().Reboots)
}

func TestLiveNodeIsNotErased(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	require.Equal(t, run.Ready, s.result(s.startNode(s.inputs(nil)[0])).State)

	r := s.startNode(s.inputs(nil)[0])
	stuck := s.waitFor(r.GetID(), run.Stuck, run.Preflight)
	require.Contains(t, stuck.Problem.Message, "live, configured member of this lot's cluster")
	s.abort(r.GetID())
	s.result(r)
	require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, s.fleet.Servers()[0].Counters().Reboots)

	again := s.result(s.startNode(s.inputs(func(n *run.Node) { n.Reprovision = true })[0]))
	require.Equal(t, run.Ready, again.State)
	require.False(t, again.Facts.Applied.Already)
}
