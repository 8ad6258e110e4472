package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/run"
)

// kinds makes a lot: b bootstraps, c is a control plane, w a worker.
func kinds(letters string) run.LotInput {
	in := lotInput(0, len(letters))
	for i, letter := range letters {
		in.Nodes[i].Node.Bootstrap = letter == 'b'
		in.Nodes[i].Node.ControlPlane = letter != 'w'
	}
	return in
}

func TestWavesStartControlPlanesFirst(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{3, 1, 5, 0, 2, 4}, orderOf(kinds("wcwbwc").Nodes).turn)
	require.Equal(t, []int{0, 1, 2}, orderOf(kinds("www").Nodes).turn)
	require.Empty(t, orderOf(nil).turn)
}

func TestTurnOfANode(t *testing.T) {
	t.Parallel()
	words := map[byte]run.State{'q': run.Queued, 'r': run.Running, 's': run.Stuck, 'R': run.Ready, 'a': run.Aborted, 'x': run.Refused}
	for _, c := range []struct {
		lot, states string
		node        int
		want        string // start, wait or never
	}{
		{"bcw", "qqq", 0, "start"},
		{"bcw", "rqq", 1, "wait"},
		{"bcw", "sqq", 1, "wait"}, // nothing can join before
		{"bcw", "sqq", 2, "wait"},
		{"bcw", "Rqq", 1, "start"},
		{"bcw", "Rqq", 2, "wait"},
		{"bcw", "Rrq", 2, "wait"},
		{"bcw", "Rsq", 2, "start"}, // the first one takes workers in
		{"bcw", "Raq", 2, "start"},
		{"bcw", "RRq", 2, "start"},
		{"bcw", "aqq", 1, "never"},
		{"bcw", "xqq", 2, "never"},
		{"ccw", "qqq", 1, "start"}, // the cluster is there already
		{"ccw", "Rrq", 2, "wait"},
		{"ccw", "xsq", 2, "start"},
		{"www", "sqq", 2, "start"},
	} {
		in := kinds(c.lot)
		states := newLot(in).status.Nodes
		for i := range states {
			states[i].State = words[c.states[i]]
		}
		o := orderOf(in.Nodes)
		got := o.of(o.gates(states), c.node)
		is := map[bool]string{true: "wait", false: "start"}[got.wait]
		if got.never != "" {
			is = "never"
			require.Contains(t, got.never, "n0, which bootstraps the cluster")
		}
		require.Equal(t, c.want, is, "%+v", c)
	}
}

// TestLotTellsWhyItWaitsForTheBootstrap: a stuck node holds the others up.
func TestLotTellsWhyItWaitsForTheBootstrap(t *testing.T) {
	t.Parallel()
	l := newLot(kinds("bcw"))
	require.Empty(t, l.rollout().held(), "nothing is stuck")
	l.set(0, run.Stuck, "no etcd")
	require.Equal(t, "n0, which bootstraps the cluster, is stuck, so the nodes behind it wait", l.rollout().held())
	require.Empty(t, l.rollout().next())
	l.set(0, run.Ready, "")
	require.Empty(t, l.rollout().held())
	require.Equal(t, []int{1}, l.rollout().next())
}

// TestLotStartsWorkersBehindControlPlanes: the order of starts and ends.
func TestLotStartsWorkersBehindControlPlanes(t *testing.T) {
	t.Parallel()
	var events []string
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.RegisterWorkflow(ProvisionLot)
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in run.NodeInput) (run.Status, error) {
		events = append(events, "+"+in.Node.Name)
		err := workflow.Sleep(ctx, time.Hour)
		events = append(events, "-"+in.Node.Name)
		return run.Status{Node: in.Node, State: run.Ready}, err
	}, workflow.RegisterOptions{Name: run.WorkflowNode})
	env.ExecuteWorkflow(ProvisionLot, kinds("wcbw"))
	lotResult(t, env)
	require.Equal(t, []string{"+n2", "-n2", "+n1", "-n1"}, events[:4])
	require.ElementsMatch(t, []string{"+n0", "+n3", "-n0", "-n3"}, events[4:])
}

// TestLotWithoutItsFirstNodeStartsNobody: the bootstrap was aborted.
func TestLotWithoutItsFirstNodeStartsNobody(t *testing.T) {
	t.Parallel()
	var started []string
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.RegisterWorkflow(ProvisionLot)
	env.RegisterWorkflowWithOptions(func(_ workflow.Context, in run.NodeInput) (run.Status, error) {
		started = append(started, in.Node.Name)
		return run.Status{Node: in.Node, State: run.Aborted}, nil
	}, workflow.RegisterOptions{Name: run.WorkflowNode})
	env.ExecuteWorkflow(ProvisionLot, kinds("wbc"))
	status := lotResult(t, env)
	require.Equal(t, []string{"n1"}, started)
	for _, i := range []int{0, 2} {
		require.Equal(t, run.Refused, status.Nodes[i].State)
		require.True(t, strings.HasPrefix(status.Nodes[i].Reason, "n1, which bootstraps the cluster, is aborted"), status.Nodes[i].Reason)
	}
}
