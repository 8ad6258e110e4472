package track

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

func other(look int, told bool, state run.State) otherMemory {
	return otherMemory{nodeMemory: nodeMemory{look: look, told: told, seen: Node{State: state}}}
}

// TestOthersAreLookedAtInTurn: a large lot is not asked for at each look.
func TestOthersAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	tracker := &Tracker{others: []otherMemory{other(0, false, ""), other(3, true, run.Ready), other(3, false, run.Aborted)}}
	for range nodesPerLook {
		tracker.others = append(tracker.others, other(2, true, run.Running))
	}
	due := tracker.othersDue()
	require.Len(t, due, 1+nodesPerLook)
	require.Zero(t, due[0].look)
	for _, m := range due[1:] {
		require.Equal(t, 2, m.look, "who was looked at longest ago comes first")
	}
}

func TestOthersTellLittle(t *testing.T) {
	t.Parallel()
	node := func(name string) run.Node { return run.Node{Name: name, Provider: "scaleway", ServerID: name} }
	l := Lot{Nodes: []Node{
		{Node: node("a"), State: run.Ready},
		{Node: node("b"), RunID: "r", State: run.Aborted, Phase: run.Write, Reason: strings.Repeat("why ", 500)},
	}}
	others := l.Others([]run.NodeInput{{Node: node("a")}})
	require.Len(t, others, 1)
	require.Equal(t, "r", others[0].RunID)
	require.Equal(t, run.Write, others[0].Phase)
	require.LessOrEqual(t, len(others[0].Reason), maxLeftReason)
}
