package tests

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

func (s *stack) dryRun(inputs []run.NodeInput) run.LotCheck {
	s.t.Helper()
	r, err := s.client.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{ID: run.CheckID(inputs[0].Node.Lot), TaskQueue: run.TaskQueue},
		run.WorkflowCheck, run.LotInput{Lot: inputs[0].Node.Lot, Nodes: inputs})
	require.NoError(s.t, err)
	var checked run.LotCheck
	require.NoError(s.t, r.Get(s.t.Context(), &checked))
	return checked
}

// TestDryRunTellsThePlanAndTouchesNothing: before anything is done, with a
// server in rescue, and with a live node.
func TestDryRunTellsThePlanAndTouchesNothing(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2})
	s.startWorker()
	wrong := func(n *run.Node) {
		if n.Name == s.fleet.Servers()[1].Node {
			n.ServerName = "somebody-elses"
		}
	}
	checked := s.dryRun(s.inputs(wrong))
	require.Nil(t, checked.Nodes[0].Problem)
	require.Nil(t, checked.Nodes[0].Facts.System, "no serial is known before rescue")
	require.Contains(t, checked.Nodes[1].Problem.Message, "somebody-elses")
	require.Contains(t, checked.Nodes[1].Problem.Erased, "nothing")
	for _, server := range s.fleet.Servers() {
		require.Empty(t, server.Counters().Reboots)
		require.Len(t, server.Machine.Boots(), 1)
	}

	// In rescue the disks are known by serial.
	r := s.startNode(s.inputs(func(n *run.Node) { n.Image.RawSHA256 = wrongDigest })[0])
	s.waitFor(r.GetID(), run.Stuck, run.Stage)
	s.abort(r.GetID())
	require.Equal(t, run.LeftRescue, s.result(r).Problem.Left)
	before := s.fleet.Servers()[0].Machine.Boots()
	node := s.dryRun(s.inputs(nil)[:1]).Nodes[0]
	require.Nil(t, node.Problem)
	require.Equal(t, "LAB0001A", node.Facts.System.Serial)
	require.Len(t, node.Facts.Secondary, 1)
	require.True(t, node.Facts.Rescue.Reused)
	after := s.fleet.Servers()[0].Machine.Boots()
	require.Len(t, after, len(before))
	require.Equal(t, before[1].Disks, after[1].Disks, "no disk was opened for writing")

	// The lot's Ready node is left alone. One with another config is refused;
	// where it may be erased, the configs are compared.
	require.Equal(t, run.Ready, s.result(s.startNode(s.inputs(nil)[0])).State)
	left := s.dryRun(s.inputs(nil)[:1]).Nodes[0]
	require.Nil(t, left.Problem)
	require.Equal(t, s.fleet.Servers()[0].Node, left.Facts.Ready.NodeName)
	require.True(t, left.Facts.Applied.Already)
	other := s.inputs(nil)[:1]
	other[0].Sealed.Config = s.inputs(nil)[1].Sealed.Config
	require.Contains(t, s.dryRun(other).Nodes[0].Problem.Message, "live, configured member of this lot's cluster")
	plan := s.dryRun(s.inputs(func(n *run.Node) { n.Reprovision = true })[:1]).Nodes[0].Facts.Preflight.Config
	require.Empty(t, plan.Unread)
	require.Equal(t, plan.SHA256, plan.Running)
	require.Empty(t, plan.Changes)
}
