package workflows

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// TestCheckOfALotInParts: each part is one activity, the result is in the
// lot's order, and a part that fails is told with each of its nodes.
func TestCheckOfALotInParts(t *testing.T) {
	t.Parallel()
	const nodes = 110
	in := run.LotInput{Lot: "l"}
	for i := range nodes {
		in.Nodes = append(in.Nodes, run.NodeInput{
			Node:   run.Node{Lot: "l", Zone: "fr-par-2", Name: fmt.Sprint("n", i), ServerID: fmt.Sprint("s", i)},
			Sealed: run.Sealed{Config: "sealed", Talosconfig: "sealed too"},
		})
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	parts := run.CheckParts(nodes)
	env.RegisterActivityWithOptions(func(ctx context.Context, part run.LotInput) ([]run.NodeCheck, error) {
		require.Contains(t, part.Shared, part.Nodes[0].Sealed.Config, "what nodes share is there once")
		if activity.GetInfo(ctx).ActivityID == "1" {
			return nil, classed(fault.NeedsOperator, "the key is refused")
		}
		var checks []run.NodeCheck
		for _, n := range part.Whole() {
			require.Equal(t, "sealed", n.Sealed.Config)
			checks = append(checks, run.NodeCheck{Name: n.Node.Name, Facts: run.Facts{Address: n.Node.ServerID}})
		}
		return checks, nil
	}, activity.RegisterOptions{Name: run.ActivityCheck})
	env.ExecuteWorkflow(CheckLot, in.Share())
	require.NoError(t, env.GetWorkflowError())
	var checked run.LotCheck
	require.NoError(t, env.GetWorkflowResult(&checked))
	require.Len(t, checked.Nodes, nodes)
	for i, n := range checked.Nodes {
		require.Equal(t, fmt.Sprint("n", i), n.Name)
		if i >= parts[1].From && i < parts[1].To {
			require.Equal(t, "the key is refused", n.Problem.Message)
			require.Contains(t, n.Problem.Erased, "nothing")
			continue
		}
		require.Nil(t, n.Problem)
		require.Equal(t, fmt.Sprint("s", i), n.Facts.Address)
	}
}

func TestPartsOfACheck(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int][]run.Part{
		0:   nil,
		1:   {{From: 0, To: 1}},
		25:  {{From: 0, To: 25}},
		26:  {{From: 0, To: 25}, {From: 25, To: 26}},
		100: {{From: 0, To: 25}, {From: 25, To: 50}, {From: 50, To: 75}, {From: 75, To: 100}},
		110: {{From: 0, To: 28}, {From: 28, To: 56}, {From: 56, To: 84}, {From: 84, To: 110}},
	} {
		require.Equal(t, want, run.CheckParts(nodes), nodes)
	}
}
