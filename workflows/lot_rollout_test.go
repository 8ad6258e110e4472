package workflows

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// stateLetters is how a lot's nodes stand, a letter each.
func stateLetters(t *testing.T, env *testsuite.TestWorkflowEnvironment) string {
	t.Helper()
	letters := ""
	for _, n := range queryLot(t, env).Nodes {
		letters += string(n.State[0])
		if n.State == run.Ready {
			letters = letters[:len(letters)-1] + "R"
		}
	}
	return letters
}

// stuckCanary is a lot of three whose canary n0 gets stuck in preflight, once.
func stuckCanary(t *testing.T) (*testsuite.TestWorkflowEnvironment, run.LotInput) {
	t.Helper()
	s := &script{errs: map[run.Phase][]error{run.Preflight: {classed(fault.NeedsOperator, "server is protected")}}}
	in := lotInput(0, 3)
	in.Rollout.Canary = 1
	return newEnv(t, s), in
}

// TestCanaryGoesFirst: a stuck canary holds the others up, and the lot says
// so.
func TestCanaryGoesFirst(t *testing.T) {
	t.Parallel()
	env, in := stuckCanary(t)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, "sqq", stateLetters(t, env))
		require.Contains(t, queryLot(t, env).Held, "canary n0 is stuck")
		require.NoError(t, env.SignalWorkflowByID(in.Nodes[0].Node.ID(), run.UpdateRetry, run.RetryRequest{}))
	}, time.Hour)
	env.ExecuteWorkflow(ProvisionLot, in)
	for _, n := range lotResult(t, env).Nodes {
		require.Equal(t, run.Ready, n.State, n.Name)
	}
}

// TestAbortedCanaryPausesTheLot until a person says to go on without it.
func TestAbortedCanaryPausesTheLot(t *testing.T) {
	t.Parallel()
	env, in := stuckCanary(t)
	env.RegisterDelayedCallback(func() {
		require.NoError(t, env.SignalWorkflowByID(in.Nodes[0].Node.ID(), run.UpdateAbort, run.AbortRequest{}))
	}, time.Hour)
	env.RegisterDelayedCallback(func() {
		status := queryLot(t, env)
		require.Equal(t, "aqq", stateLetters(t, env))
		require.True(t, status.Paused.Itself)
		require.Contains(t, status.Paused.Reason, "canary n0 is aborted")
		update(t, env, run.UpdateResume, run.ResumeRequest{}, "")
	}, 2*time.Hour)
	env.ExecuteWorkflow(ProvisionLot, in)
	status := lotResult(t, env)
	require.Equal(t, run.Ready, status.Nodes[2].State)
	require.Nil(t, status.Paused)
}

// TestTooManyStuckNodesPauseTheLot, and a resume accepts them.
func TestTooManyStuckNodesPauseTheLot(t *testing.T) {
	t.Parallel()
	no := classed(fault.NeedsOperator, "no")
	s := &script{errs: map[run.Phase][]error{run.Preflight: {no, no}}}
	env := newEnv(t, s)
	in := lotInput(1, 5)
	in.Rollout.MaxStuck = atMost(1)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, "ssqqq", stateLetters(t, env))
		require.Contains(t, queryLot(t, env).Held, "2 nodes are stuck")
		update(t, env, run.UpdatePause, run.PauseRequest{}, "paused already")
		update(t, env, run.UpdateResume, run.ResumeRequest{}, "")
	}, time.Hour)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, "ssRRR", stateLetters(t, env))
		for _, n := range in.Nodes[:2] {
			require.NoError(t, env.SignalWorkflowByID(n.Node.ID(), run.UpdateRetry, run.RetryRequest{}))
		}
	}, 2*time.Hour)
	env.ExecuteWorkflow(ProvisionLot, in)
	require.Len(t, lotResult(t, env).Nodes, 5)
}

// TestPauseAndResume by update and by signal. Nodes at work go on.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	var now, most int
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	patient(env)
	env.RegisterWorkflow(ProvisionLot)
	counted(env, &now, &most) // an hour each
	env.RegisterDelayedCallback(func() {
		update(t, env, run.UpdateResume, run.ResumeRequest{}, "not paused")
		update(t, env, run.UpdatePause, run.PauseRequest{Reason: "the image server is slow", By: "ann@desk"}, "")
	}, time.Minute)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, "Rqqq", stateLetters(t, env))
		require.Equal(t, "the image server is slow", queryLot(t, env).Held)
		require.Equal(t, "paused by ann@desk: the image server is slow", queryLot(t, env).Paused.String())
		env.SignalWorkflow(run.UpdateResume, run.ResumeRequest{})
	}, 5*time.Hour)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(run.UpdatePause, run.PauseRequest{}) }, 5*time.Hour+time.Minute)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, "RRqq", stateLetters(t, env))
		env.SignalWorkflow(run.UpdateResume, run.ResumeRequest{})
	}, 9*time.Hour)
	env.ExecuteWorkflow(ProvisionLot, lotInput(1, 4))
	require.Len(t, lotResult(t, env).Nodes, 4)
	require.Equal(t, 1, most)
}

// TestFirstImageIsTheLots: later ones are refused and told the first.
func TestFirstImageIsTheLots(t *testing.T) {
	t.Parallel()
	var now, most int
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	patient(env)
	env.RegisterWorkflow(ProvisionLot)
	counted(env, &now, &most)
	env.RegisterDelayedCallback(func() {
		update(t, env, run.UpdateImage, run.LotImage{Node: "n1"}, "without a digest")
		update(t, env, run.UpdateImage, run.LotImage{RawSHA256: "aa", Node: "n0"}, "")
	}, time.Minute)
	env.RegisterDelayedCallback(func() {
		for _, digest := range []string{"aa", "bb"} {
			update(t, env, run.UpdateImage, run.LotImage{RawSHA256: digest, Node: "n1"}, "is set")
		}
		require.Equal(t, &run.LotImage{RawSHA256: "aa", Node: "n0"}, queryLot(t, env).Image)
	}, 2*time.Minute)
	env.ExecuteWorkflow(ProvisionLot, lotInput(0, 2))
	require.Equal(t, "n0", lotResult(t, env).Image.Node)
}

// continued is the input with which a lot's workflow has continued as new.
func continued(t *testing.T, env *testsuite.TestWorkflowEnvironment) run.LotInput {
	t.Helper()
	require.True(t, env.IsWorkflowCompleted())
	var next *workflow.ContinueAsNewError
	require.True(t, errors.As(env.GetWorkflowError(), &next), "%v", env.GetWorkflowError())
	var in run.LotInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	return in
}

// TestAddedNodesContinueTheLot: with the whole lot in the next run's input,
// which takes up what the first one has seen.
func TestAddedNodesContinueTheLot(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Preflight: {classed(fault.NeedsOperator, "server is protected")}}}
	env := newEnv(t, s)
	in := lotInput(1, 2)
	more := lotInput(0, 4)
	more.Nodes = more.Nodes[2:]
	env.RegisterDelayedCallback(func() {
		update(t, env, run.UpdateImage, run.LotImage{RawSHA256: "aa", Node: "n1"}, "")
		for refusal, wrong := range map[string]run.LotInput{
			"0 nodes":             {Lot: "lot"},
			"of lot \"other\"":    {Lot: "other", Nodes: more.Nodes},
			"has a node n0":       {Lot: "lot", Nodes: in.Nodes[:1]},
			"a server of its own": {Lot: "lot", Nodes: []run.NodeInput{{Node: run.Node{Name: "x", Provider: "scaleway", ServerID: "id-n0"}}}},
			"is that of node n1":  {Lot: "lot", Nodes: []run.NodeInput{{Node: run.Node{Name: "x", Provider: "scaleway", ServerID: "new", ServerName: in.Nodes[1].Node.ServerName}}}},
			"is that of node y":   {Lot: "lot", Nodes: []run.NodeInput{{Node: run.Node{Name: "y", ServerID: "new-1", ServerName: "new"}}, {Node: run.Node{Name: "z", ServerID: "NEW"}}}},
		} {
			update(t, env, run.UpdateAdd, wrong, refusal)
		}
		update(t, env, run.UpdateAdd, more.Share(), "")
	}, time.Hour)
	// The test environment waits for abandoned children.
	env.RegisterDelayedCallback(func() {
		require.NoError(t, env.SignalWorkflowByID(in.Nodes[0].Node.ID(), run.UpdateAbort, run.AbortRequest{}))
	}, 2*time.Hour)
	env.ExecuteWorkflow(ProvisionLot, in.Share())
	next := continued(t, env)
	require.Equal(t, map[run.State][]int{run.Stuck: {0}, run.Ready: {1}}, next.Progress.States)
	require.Equal(t, "server is protected", next.Progress.Reasons[0])
	require.Len(t, next.Progress.Runs, 1)
	require.Equal(t, run.NodeInput{Node: in.Nodes[0].Node}, next.Node(0), "what a started node was told sealed is not carried on")
	require.Equal(t, more.Nodes[1], next.Node(3))

	env = newEnv(t, &script{})
	env.RegisterDelayedCallback(func() {
		require.Equal(t, "sRRR", stateLetters(t, env))
		// A run of an earlier lot on another server, for a node that was called the same.
		env.SignalWorkflow(run.SignalNodeState, run.NodeState{Name: "n0", WorkflowID: "provision/scaleway/another", State: run.Aborted})
		env.SignalWorkflow(run.SignalNodeState, run.NodeState{Name: "n0", WorkflowID: in.Nodes[0].Node.ID(), State: run.Ready})
	}, time.Hour)
	env.ExecuteWorkflow(ProvisionLot, next)
	status := lotResult(t, env)
	require.Equal(t, "aa", status.Image.RawSHA256)
	require.Len(t, status.Nodes, 4)
	for _, n := range status.Nodes {
		require.Equal(t, run.Ready, n.State, n.Name)
		require.Empty(t, n.Reason)
	}
}

// TestNodeReportsItsEndToALotThatHasContinued, and to no other: Temporal
// reports it to the run that has started the node.
func TestNodeReportsItsEndToALotThatHasContinued(t *testing.T) {
	t.Parallel()
	for _, continued := range []bool{true, false} {
		env := newEnv(t, &script{errs: map[run.Phase][]error{run.Stage: {classed(fault.NeedsOperator, "digest")}}})
		lot := func(ctx workflow.Context) ([]run.NodeState, error) {
			in := input("n1")
			child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: in.Node.ID()}), run.WorkflowNode, in)
			reports := workflow.GetSignalChannel(ctx, run.SignalNodeState)
			var got []run.NodeState
			var r run.NodeState
			reports.Receive(ctx, &r) // it is stuck
			if continued {
				if err := child.SignalChildWorkflow(ctx, run.SignalContinued, nil).Get(ctx, nil); err != nil {
					return nil, err
				}
			}
			if err := child.SignalChildWorkflow(ctx, run.UpdateAbort, run.AbortRequest{Reason: "enough"}).Get(ctx, nil); err != nil {
				return nil, err
			}
			if err := child.Get(ctx, nil); err != nil {
				return nil, err
			}
			for reports.ReceiveAsync(&r) {
				got = append(got, r)
			}
			return got, nil
		}
		env.RegisterWorkflow(lot)
		env.ExecuteWorkflow(lot)
		require.NoError(t, env.GetWorkflowError())
		var got []run.NodeState
		require.NoError(t, env.GetWorkflowResult(&got))
		if !continued {
			require.Empty(t, got)
			continue
		}
		require.Len(t, got, 1)
		require.Equal(t, run.Aborted, got[0].State)
		require.Contains(t, got[0].Reason, "enough")
	}
}

// TestANodeIsAbortedBeforeItStarts, and only then: later its own run is asked.
func TestANodeIsAbortedBeforeItStarts(t *testing.T) {
	t.Parallel()
	env, in := stuckCanary(t)
	env.RegisterDelayedCallback(func() {
		update(t, env, run.UpdateAbort, run.AbortRequest{Node: "n0"}, "abort its run")
		update(t, env, run.UpdateAbort, run.AbortRequest{Node: "n9"}, "has no node")
		update(t, env, run.UpdateAbort, run.AbortRequest{Node: "n2", Reason: "sold", By: "ann@desk"}, "")
	}, time.Hour)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, "sqa", stateLetters(t, env))
		require.NoError(t, env.SignalWorkflowByID(in.Nodes[0].Node.ID(), run.UpdateRetry, run.RetryRequest{}))
	}, 2*time.Hour)
	env.ExecuteWorkflow(ProvisionLot, in)
	status := lotResult(t, env)
	require.Equal(t, run.Ready, status.Nodes[1].State)
	require.Equal(t, "aborted by ann@desk before it was started: sold", status.Nodes[2].Reason)
}
