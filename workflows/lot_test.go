package workflows

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

func lotInput(parallel, nodes int) run.LotInput {
	in := run.LotInput{Lot: "lot", Rollout: run.Rollout{Parallel: parallel}}
	for i := range nodes {
		in.Nodes = append(in.Nodes, input(fmt.Sprintf("n%d", i)))
	}
	return in
}

func queryLot(t *testing.T, env *testsuite.TestWorkflowEnvironment) run.LotStatus {
	t.Helper()
	value, err := env.QueryWorkflow(run.QueryStatus)
	require.NoError(t, err)
	var s run.LotStatus
	require.NoError(t, value.Get(&s))
	return s
}

func lotResult(t *testing.T, env *testsuite.TestWorkflowEnvironment) run.LotStatus {
	t.Helper()
	var s run.LotStatus
	completed(t, env, &s)
	return s
}

// counted replaces ProvisionNode by a workflow that takes an hour and counts
// how many run at once.
func counted(env *testsuite.TestWorkflowEnvironment, now, most *int) {
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in run.NodeInput) (run.Status, error) {
		*now++
		*most = max(*most, *now)
		err := workflow.Sleep(ctx, time.Hour)
		*now--
		return run.Status{Node: in.Node, State: run.Ready}, err
	}, workflow.RegisterOptions{Name: run.WorkflowNode})
}

func TestLotBoundsTheNodesAtWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ parallel, nodes, most int }{{2, 7, 2}, {0, 7, 7}, {9, 3, 3}, {1, 1, 1}} {
		var now, most int
		env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
		patient(env)
		env.RegisterWorkflow(ProvisionLot)
		counted(env, &now, &most)
		env.ExecuteWorkflow(ProvisionLot, lotInput(c.parallel, c.nodes))
		status := lotResult(t, env)
		require.Equal(t, c.most, most, "%+v", c)
		require.Len(t, status.Nodes, c.nodes)
		for _, n := range status.Nodes {
			require.Equal(t, run.Ready, n.State)
		}
	}
}

func TestStuckNodeHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Preflight: {classed(fault.NeedsOperator, "server is protected")}}}
	env := newEnv(t, s)
	in := lotInput(1, 3)
	env.RegisterDelayedCallback(func() {
		status := queryLot(t, env)
		require.Equal(t, run.Stuck, status.Nodes[0].State)
		require.Equal(t, "server is protected", status.Nodes[0].Reason)
		require.Equal(t, run.Ready, status.Nodes[1].State)
		require.Equal(t, run.Ready, status.Nodes[2].State)
		require.NoError(t, env.SignalWorkflowByID(in.Nodes[0].Node.ID(), run.UpdateRetry, run.RetryRequest{}))
	}, time.Hour)
	env.ExecuteWorkflow(ProvisionLot, in)
	for _, n := range lotResult(t, env).Nodes {
		require.Equal(t, run.Ready, n.State, n.Name)
		require.Empty(t, n.Reason)
	}
}

func TestServerHeldByAnotherRunIsRefused(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := newEnv(t, s)
	in := lotInput(0, 2)
	in.Nodes[1].Node.ServerID = in.Nodes[0].Node.ServerID
	env.ExecuteWorkflow(ProvisionLot, in)
	status := lotResult(t, env)
	require.Equal(t, run.Ready, status.Nodes[0].State)
	require.Equal(t, run.Refused, status.Nodes[1].State)
	require.Contains(t, status.Nodes[1].Reason, in.Nodes[0].Node.ID())
	require.Len(t, s.inputs[run.Preflight], 1, "the second run touched nothing")
}

func TestCancelledLotStartsNobodyAndWaits(t *testing.T) {
	t.Parallel()
	var now, most int
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	patient(env)
	env.RegisterWorkflow(ProvisionLot)
	counted(env, &now, &most)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.ExecuteWorkflow(ProvisionLot, lotInput(2, 5))
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()))
	status := queryLot(t, env)
	require.Equal(t, run.Aborted, status.Nodes[0].State)
	require.Equal(t, run.Aborted, status.Nodes[1].State)
	require.Equal(t, run.Queued, status.Nodes[4].State)
	require.Zero(t, now)
}

func TestDetailsNameTheStuckNodesAndWhy(t *testing.T) {
	t.Parallel()
	text := lotDetails(run.LotStatus{Lot: "l", Nodes: []run.NodeState{
		{Name: "a", State: run.Ready}, {Name: "b", State: run.Stuck, Reason: "pipe | and\nline"}}})
	require.Contains(t, text, "1 of 2 Ready")
	require.Contains(t, text, `| b | stuck | pipe \| and line |`)
}

// TestDetailsTellWhyNodesWait on the lot's page, too.
func TestDetailsTellWhyNodesWait(t *testing.T) {
	t.Parallel()
	text := lotDetails(run.LotStatus{Lot: "l", Nodes: states("wqq"), Waits: []run.Wait{{Cause: run.WaitsForCanary, For: []string{"n0"}, Nodes: []int{1, 2}}}})
	require.Contains(t, text, "2 nodes wait because the canary n0 is not Ready yet")
}

// TestNodeThatIsEndedFromOutside: Temporal's own words name its IDs, and say
// nothing of the server.
func TestNodeThatIsEndedFromOutside(t *testing.T) {
	t.Parallel()
	for want, end := range map[string]error{
		"its run was cancelled in Temporal":                                   temporal.NewCanceledError(),
		"its run was ended by a time limit that somebody has set in Temporal": temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil),
		"its run failed in the code of the workflow":                          temporal.NewApplicationError("boom", "Boom"),
	} {
		env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
		patient(env)
		env.RegisterWorkflow(ProvisionLot)
		env.RegisterWorkflowWithOptions(func(workflow.Context, run.NodeInput) (run.Status, error) { return run.Status{}, end },
			workflow.RegisterOptions{Name: run.WorkflowNode})
		in := lotInput(0, 1)
		in.Nodes[0].Node.Lot = "lot"
		env.ExecuteWorkflow(ProvisionLot, in)
		n := lotResult(t, env).Nodes[0]
		require.Equal(t, run.Aborted, n.State)
		require.Equal(t, want+"; `starter status lot n0` tells how its server was left", n.Reason)
	}
	state, reason := ended(run.Node{Lot: "lot", Name: "n0"}, run.Status{}, fmt.Errorf("child: %w", &temporal.TerminatedError{}))
	require.Equal(t, run.Aborted, state)
	require.Equal(t, "its run was terminated in Temporal; `starter status lot n0` tells how its server was left", reason)
}
