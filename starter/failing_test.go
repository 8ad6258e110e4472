package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
)

// TestALotWhoseWorkflowFails: a worker that cannot get the lot's workflow any
// further is told of where people look, not only in its own log.
func TestALotWhoseWorkflowFails(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	w := worker.New(cluster.client, run.TaskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context, run.LotInput) error { panic("of another release") }, workflow.RegisterOptions{Name: run.WorkflowLot})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	c := newConsole(t, cluster.address)
	require.Equal(t, exitOK, c.starter("provision", "--batch", lottest.Lot(t, "broken", 1), "--yes", "--detach"), c.err)
	status := newConsole(t, cluster.address)
	eventually(t, "status tells of the workflow", func() bool {
		status = status.again()
		status.starter("status", "broken")
		return strings.Contains(status.out.String(), "its workflow task fails again and again")
	})
	text := strings.Join(strings.Fields(status.out.String()), " ")
	require.Contains(t, text, "The lot does not go on: its workflow task fails again and again (attempt ")
	require.Contains(t, text, "of another release")
	require.NotContains(t, text, "No worker answers")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := newConsole(t, cluster.address)
	done := make(chan struct{})
	go func() { defer close(done); watch.run(ctx, []string{"status", "broken", "--watch"}) }()
	eventually(t, "so does a watch", func() bool {
		return strings.Contains(watch.out.String(), "lot broken: its workflow task fails again and again")
	})
	cancel()
	<-done
}
