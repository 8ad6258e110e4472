//go:build !race

package workflows

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/ironlot/ironlot/internal/run"
)

// TestThousandsOfNodes goes through as many runs of the lot's workflow as it
// takes, each with an input that Temporal takes, and never with more nodes at
// work than the lot allows. Nodes of earlier runs report their end.
func TestThousandsOfNodes(t *testing.T) {
	t.Parallel()
	const nodes, parallel = 10_000, 100
	in := run.LotInput{Lot: "lot", Rollout: run.Rollout{Parallel: parallel}}
	for i := range nodes {
		n := input(fmt.Sprintf("node-%05d", i))
		n.Node.Zone, n.Node.ServerID = "fr-par-2", fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		n.Node.Image = run.Image{URL: "https://images.example/metal-amd64.raw.zst"}
		in.Nodes = append(in.Nodes, n)
	}
	in = in.Share()
	for runs := 1; ; runs++ {
		require.LessOrEqual(t, runs, nodes/maxStarts+1)
		data, err := json.Marshal(in)
		require.NoError(t, err)
		require.Less(t, len(data), 2<<20-64<<10, "run %d", runs)

		suite := new(testsuite.WorkflowTestSuite)
		suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
		env := suite.NewTestWorkflowEnvironment()
		patient(env)
		env.RegisterWorkflow(ProvisionLot)
		env.OnActivity(gather, mock.Anything, mock.Anything).Return(nil) // it takes real time
		var now, most int
		counted(env, &now, &most) // an hour each
		if in.Progress != nil {
			now = len(in.Progress.States[run.Running])
			for _, i := range in.Progress.States[run.Running] {
				n := in.Node(i).Node
				env.RegisterDelayedCallback(func() {
					now--
					env.SignalWorkflow(run.SignalNodeState, run.NodeState{Name: n.Name, WorkflowID: n.ID(), State: run.Ready})
				}, time.Hour)
			}
		}
		env.ExecuteWorkflow(ProvisionLot, in)
		require.LessOrEqual(t, most, parallel)
		if env.GetWorkflowError() == nil {
			for _, n := range lotResult(t, env).Nodes {
				require.Equal(t, run.Ready, n.State, n.Name)
			}
			return
		}
		in = continued(t, env)
	}
}
