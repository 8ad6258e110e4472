package job_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
)

func fenced(run string, pass int) api.JobSpec {
	spec := stageSpec()
	spec.Fence = &api.Fence{Run: run, Pass: pass}
	return spec
}

// untilStopped is work that ends when it is told to.
func untilStopped(ctx context.Context, _ host.Host, _ api.JobSpec, _ report.Reporter) (api.JobResult, error) {
	<-ctx.Done()
	return api.JobResult{}, ctx.Err()
}

// TestFenceKeepsLatecomersAway: the machine starts nothing for another run or
// for a pass that is over, and still tells them of the jobs that are there.
func TestFenceKeepsLatecomersAway(t *testing.T) {
	t.Parallel()
	l := newLab(t, quick)
	ctx := t.Context()
	_, err := l.jobs.Start(ctx, "a-stage-1.1", fenced("a", 5))
	require.NoError(t, err)
	l.done.Wait()
	_, err = l.jobs.Start(ctx, "a-write-1.1", fenced("a", 6))
	require.NoError(t, err)
	l.done.Wait()

	_, err = l.jobs.Start(ctx, "a-stage-1.2", fenced("a", 5))
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "pass 6")
	_, err = l.jobs.Start(ctx, "b-stage-1.1", fenced("b", 9))
	require.ErrorContains(t, err, "taken over by the run a")
	attached, err := l.jobs.Start(ctx, "a-stage-1.1", fenced("a", 5))
	require.NoError(t, err)
	require.True(t, attached.Attached)
	require.EqualValues(t, 2, l.starts.Load(), "no job was started for latecomers")

	claimed, err := l.jobs.Claim(ctx, api.Claim{Fence: api.Fence{Run: "b", Pass: 3}})
	require.NoError(t, err)
	require.Empty(t, claimed.Running)
	_, err = l.jobs.Start(ctx, "a-write-2.1", fenced("a", 7))
	require.ErrorContains(t, err, "taken over by the run b")
	_, err = l.jobs.Start(ctx, "b-stage-1.1", fenced("b", 4))
	require.NoError(t, err)
}

// TestClaimLeavesAForeignJobAlone unless it is told to stop that very job.
func TestClaimLeavesAForeignJobAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilStopped)
	ctx := t.Context()
	_, err := l.jobs.Start(ctx, "a-write-1.1", fenced("a", 6))
	require.NoError(t, err)

	claimed, err := l.jobs.Claim(ctx, api.Claim{Fence: api.Fence{Run: "a", Pass: 6}})
	require.NoError(t, err)
	require.Empty(t, claimed.Running, "one's own job is no hindrance")
	claimed, err = l.jobs.Claim(ctx, api.Claim{Fence: api.Fence{Run: "b", Pass: 3}})
	require.NoError(t, err)
	require.Equal(t, "a-write-1.1", claimed.Running)
	status, err := l.jobs.Status(ctx, "a-write-1.1")
	require.NoError(t, err)
	require.Equal(t, api.JobRunning, status.State)

	claimed, err = l.jobs.Claim(ctx, api.Claim{Fence: api.Fence{Run: "b", Pass: 3}, Evict: "a-write-1.1"})
	require.NoError(t, err)
	require.Empty(t, claimed.Running)
	status, err = l.jobs.Status(ctx, "a-write-1.1")
	require.NoError(t, err)
	require.Equal(t, api.JobCanceled, status.State)
	_, err = l.jobs.Start(ctx, "a-write-1.2", fenced("a", 6))
	require.ErrorContains(t, err, "taken over by the run b")
}
