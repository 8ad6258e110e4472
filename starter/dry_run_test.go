package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/workflows"
)

// TestDryRunShowsHowFarItHasCome: who waits longer than a moment reads for
// what, also while no worker runs.
func TestDryRunShowsHowFarItHasCome(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	path := lottest.Lot(t, "slow", 2)
	c := newConsole(t, cluster.address)
	code := make(chan int, 1)
	go func() { code <- c.run(t.Context(), []string{"provision", "--batch", path, "--dry-run"}) }()
	said := func(text string) {
		t.Helper()
		eventually(t, text, func() bool { return strings.Contains(c.err.String(), text) })
	}
	said("the check of lot slow waits for a worker")

	seen := make(chan struct{})
	for _, queue := range []string{run.TaskQueue, run.ProviderTaskQueue} {
		w := worker.New(cluster.client, queue, worker.Options{})
		w.RegisterWorkflowWithOptions(workflows.CheckLot, workflow.RegisterOptions{Name: run.WorkflowCheck})
		w.RegisterActivityWithOptions(func(ctx context.Context, in run.LotInput) ([]run.NodeCheck, error) {
			activity.RecordHeartbeat(ctx, run.Progress{Step: "checking nodes", Done: 1, Total: 2})
			select {
			case <-seen:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return []run.NodeCheck{
				{Name: in.Node(0).Node.Name},
				{Name: in.Node(1).Node.Name, Problem: &run.Problem{Message: "the server is protected", Remedy: "take it off"}},
			}, nil
		}, activity.RegisterOptions{Name: run.ActivityCheck})
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	said("checking lot slow: 1 of 2 servers")
	close(seen)
	require.Equal(t, exitRefused, <-code)
	require.Contains(t, c.out.String(), "REFUSED  the server is protected")
	require.Contains(t, c.out.String(), "1 of 2 nodes pass preflight. Nothing was touched.")

	c = c.again()
	require.Equal(t, exitRefused, c.starter("provision", "--batch", path, "--dry-run", "-o", "json"))
	var facts checkFacts
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &facts))
	require.True(t, facts.Simulated)
	require.Equal(t, "slow", facts.Lot)
	require.Len(t, facts.Nodes, 2)
}
