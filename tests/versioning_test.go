package tests

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/worker"
)

// TestRunsStayWithTheirBuild: a new build becomes the current one while a lot
// is at work. The lot and its nodes go on with the old build to the end, new
// runs start on the new one.
func TestRunsStayWithTheirBuild(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2})
	build := func(id string) *worker.Versioning {
		return &worker.Versioning{Deployment: "ironlot-" + s.namespace, BuildID: id, MakeCurrent: true}
	}
	stopOld := s.startBuild(build("old"))
	inputs := s.inputs(func(n *run.Node) {
		if n.Name == s.fleet.Servers()[0].Node {
			n.Image.RawSHA256 = wrongDigest // stuck, so that it outlives the upgrade
		}
	})
	lot := s.startLot(inputs[:1])
	id := inputs[0].Node.ID()
	s.waitFor(id, run.Stuck, run.Stage)
	s.startBuild(build("new"))
	require.Equal(t, run.Ready, s.result(s.startNode(inputs[1])).State)
	require.Equal(t, "new", s.buildOf(inputs[1].Node.ID()))

	in := s.inputs(nil)[0]
	s.update(id, run.UpdateRetry, run.RetryRequest{Input: &in})
	var status run.LotStatus
	require.NoError(t, lot.Get(t.Context(), &status))
	require.Equal(t, run.Ready, status.Nodes[0].State)
	require.Equal(t, "old", s.buildOf(id))
	require.Equal(t, "old", s.buildOf(lot.GetID()))
	stopOld()
}

func TestHalfAVersionIsRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, worker.Versioning{BuildID: "b"}.Check())
	require.ErrorContains(t, worker.Versioning{MakeCurrent: true}.Check(), "no worker deployment")
	require.ErrorContains(t, worker.Versioning{Deployment: "d"}.Check(), "no ID")
}

// buildOf is the build that a workflow has run on last.
func (s *stack) buildOf(id string) string {
	s.t.Helper()
	d, err := s.client.DescribeWorkflow(s.t.Context(), id, "")
	require.NoError(s.t, err)
	return d.RawResponse.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId()
}
