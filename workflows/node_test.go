package workflows

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

func TestHappyRunPassesEachPhaseOnce(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := newEnv(t, s)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	status := result(t, env)
	require.Equal(t, run.Ready, status.State)
	require.Equal(t, run.Phases(), s.calls)
	require.Len(t, status.Timeline, len(run.Phases()))
	require.Zero(t, status.Rewinds)
	require.Nil(t, status.Problem)
}

func TestOnlyPhasesThatNeedTheConfigGetIt(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := newEnv(t, s)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	for p, inputs := range s.inputs {
		wants := p == run.Preflight || p == run.ApplyConfig || p == run.WaitReady
		require.Equal(t, wants, inputs[0].TakesConfig, "phase %s", p)
		require.Nil(t, inputs[0].Sealed, "the history holds it once")
	}
}

func TestTransientIsRetriedInPlaceWithTheSameKey(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Stage: {classed(fault.Transient, "cut"), errors.New("unclassified")}}}
	env := newEnv(t, s)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.Equal(t, run.Ready, result(t, env).State)
	require.Len(t, s.inputs[run.Stage], 3)
	require.Equal(t, s.inputs[run.Stage][0].Key, s.inputs[run.Stage][2].Key)
	require.Len(t, s.inputs[run.DiskPrep], 1)
}

func TestRescueLostRewindsByTheTable(t *testing.T) {
	t.Parallel()
	lost := classed(fault.RescueLost, "another boot answers")
	for _, c := range []struct {
		in   run.Phase
		back run.Phase
	}{
		{run.RebootRescue, run.RebootRescue}, {run.WaitSSH, run.RebootRescue}, {run.DiskPrep, run.WaitSSH},
		{run.Stage, run.WaitSSH}, {run.Write, run.Stage}, {run.SysrqReset, run.BootNormal},
		{run.BootNormal, run.BootNormal}, {run.ApplyConfig, run.BootNormal},
	} {
		t.Run(string(c.in), func(t *testing.T) {
			t.Parallel()
			s := &script{errs: map[run.Phase][]error{c.in: {lost}}}
			env := newEnv(t, s)
			env.ExecuteWorkflow(ProvisionNode, input("n1"))
			status := result(t, env)
			require.Equal(t, run.Ready, status.State)
			require.Equal(t, 1, status.Rewinds)
			at := position(table(), c.in)
			require.Equal(t, c.in, s.calls[at])
			require.Equal(t, c.back, s.calls[at+1])
			if in := s.inputs[c.in]; len(in) > 1 {
				require.NotEqual(t, in[0].Key, in[1].Key, "a new pass has a new key")
			}
		})
	}
}

func TestRewindRemembersTheBootAndTheDisks(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Stage: {classed(fault.RescueLost, "gone")}}}
	env := newEnv(t, s)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	again := s.inputs[run.WaitSSH][1].Facts
	require.Equal(t, []string{"boot-a"}, again.SeenBoots)
	require.Nil(t, again.Rescue)
	require.Nil(t, again.Prepared)
	require.Equal(t, "S1", again.System.Serial, "a run never changes its mind about the disk")
}

func TestRewindsAreBounded(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{}}
	for range 100 {
		s.errs[run.Stage] = append(s.errs[run.Stage], classed(fault.RescueLost, "another boot answers"))
	}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(func() {
		status := queryNode(t, env)
		require.Equal(t, run.Stuck, status.State)
		require.Contains(t, status.Problem.Message, "gave up after going back 5 times")
		require.Len(t, s.inputs[run.Stage], maxRewinds+1)
		signalAbort(env)
	}, 48*time.Hour)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.Equal(t, run.Aborted, result(t, env).State)
}

func TestNeedsOperatorIsStuckAtOnceAndRetryGoesOn(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.DiskPrep: {classed(fault.NeedsOperator, "no disk has serial S9")}}}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(func() {
		status := queryNode(t, env)
		require.Equal(t, run.Stuck, status.State)
		require.Equal(t, run.DiskPrep, status.Problem.Phase)
		require.Equal(t, "do this", status.Problem.Remedy)
		require.Equal(t, "last line", status.Problem.Tail)
		require.Contains(t, status.Problem.Erased, "may be partly erased")
		require.Len(t, s.inputs[run.DiskPrep], 1, "not tried again by itself")
		update(t, env, run.UpdateRetry, run.RetryRequest{}, "")
	}, time.Hour)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.Equal(t, run.Ready, result(t, env).State)
	require.Len(t, s.inputs[run.DiskPrep], 2)
	require.Len(t, s.inputs[run.WaitSSH], 1)
}

func TestRetryFromAnEarlierPhase(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Write: {classed(fault.NeedsOperator, "disk fails")}}}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(func() {
		update(t, env, run.UpdateRetry, run.RetryRequest{From: "nonsense"}, "there is no phase")
		update(t, env, run.UpdateRetry, run.RetryRequest{From: run.BootNormal}, "has not proved")
		require.Equal(t, run.Stuck, queryNode(t, env).State)
		update(t, env, run.UpdateRetry, run.RetryRequest{From: run.RebootRescue}, "")
	}, time.Hour)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.Equal(t, run.Ready, result(t, env).State)
	require.Len(t, s.inputs[run.RebootRescue], 2)
	require.Equal(t, []string{"boot-a"}, s.inputs[run.RebootRescue][1].Facts.SeenBoots)
}

func TestRetryFromAPhaseThatLostItsGroundIsRefused(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.ApplyConfig: {classed(fault.NeedsOperator, "config refused")}}}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(func() {
		update(t, env, run.UpdateRetry, run.RetryRequest{From: run.Write}, "needs the rescue boot")
		update(t, env, run.UpdateRetry, run.RetryRequest{From: run.RebootRescue}, "")
	}, time.Hour)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.Equal(t, run.Ready, result(t, env).State)
}

func TestRetryOfARunningNodeIsRefused(t *testing.T) {
	t.Parallel()
	s := &script{block: run.Write}
	env := newEnv(t, s)
	env.SetTestTimeout(10 * time.Second)
	env.RegisterDelayedCallback(func() {
		update(t, env, run.UpdateRetry, run.RetryRequest{}, "not stuck")
		env.SignalWorkflow(run.UpdateRetry, run.RetryRequest{})
		signalAbort(env)
	}, 0)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.Equal(t, run.Aborted, result(t, env).State)
}

func TestAbortCancelsThePhaseAndStopsTheJob(t *testing.T) {
	t.Parallel()
	s := &script{block: run.Write}
	env := newEnv(t, s)
	env.SetTestTimeout(10 * time.Second)
	var seen []run.Status
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converterValues) {
		if info.ActivityType.Name == string(run.Write) {
			env.UpdateWorkflow(run.UpdateAbort, "", accepted(t), run.AbortRequest{Reason: "wrong machine", By: "ann@desk"})
		}
		if info.ActivityType.Name == run.ActivityStopJob {
			seen = append(seen, queryNode(t, env))
		}
	})
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.Len(t, seen, 1)
	require.True(t, seen[0].Aborting, "who looks sees it before it is over")
	require.Equal(t, run.Running, seen[0].State)
	status := result(t, env)
	require.Equal(t, run.Aborted, status.State)
	require.False(t, status.Aborting)
	require.Equal(t, "aborted in write by ann@desk: wrong machine", status.Problem.Message)
	last := status.Timeline[len(status.Timeline)-1]
	require.Equal(t, "Aborted: stopped by ann@desk: wrong machine", outcome(last))
	require.Contains(t, details(status), "| Aborted: stopped by ann@desk: wrong machine |")
	require.Contains(t, status.Problem.Erased, "are erased")
	require.Equal(t, []string{s.inputs[run.Write][0].Key}, s.stopped)
	require.NotContains(t, s.calls, run.SysrqReset)
}

func TestAbortOfAStuckPreflightTouchesNothing(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Preflight: {classed(fault.NeedsOperator, "protected")}}}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(func() { signalAbort(env) }, time.Hour)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	status := result(t, env)
	require.Equal(t, run.Aborted, status.State)
	require.Equal(t, []run.Phase{run.Preflight}, s.calls)
	require.Empty(t, s.stopped)
	require.Contains(t, status.Problem.Erased, "nothing")
}

// TestCancelledWorkflowNamesNoInternals of Temporal in its story.
func TestCancelledWorkflowNamesNoInternals(t *testing.T) {
	t.Parallel()
	s := &script{block: run.Write}
	env := newEnv(t, s)
	patient(env)
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converterValues) {
		if info.ActivityType.Name == string(run.Write) {
			env.CancelWorkflow()
		}
	})
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()))
	status := queryNode(t, env)
	require.Equal(t, "Aborted: stopped by cancelling the workflow", outcome(status.Timeline[len(status.Timeline)-1]))
}

func TestCancelledWorkflowEndsCancelled(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Preflight: {classed(fault.NeedsOperator, "protected")}}}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()))
	require.Equal(t, run.Aborted, queryNode(t, env).State)
}
