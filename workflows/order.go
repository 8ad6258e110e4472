package workflows

import (
	"fmt"
	"slices"

	"github.com/ironlot/ironlot/internal/run"
)

// waves gives the indices of a lot's nodes in the order in which they start:
// the one that bootstraps the cluster, the other control planes, the workers.
// Within a wave the lot's own order stays.
func waves(nodes []run.NodeInput) []int {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return wave(nodes[i].Node) - wave(nodes[j].Node) })
	return order
}

// wave is the number of the wave that a node starts in.
func wave(n run.Node) int {
	switch {
	case n.Bootstrap:
		return 0
	case n.ControlPlane:
		return 1
	default:
		return 2
	}
}

// turn says whether a node may start.
type turn struct {
	wait  bool
	never string // why it can never start; empty: it can
}

// turnOf decides from the states of a lot's nodes whether the one at index i
// may start. Nobody joins a cluster that is not bootstrapped, so all wait for
// the bootstrap to be Ready. Otherwise a node waits only while a control plane
// of an earlier wave is on its way: one that is stuck or has ended holds up
// nobody, for the cluster's other control planes take the node in.
func turnOf(nodes []run.NodeInput, states []run.NodeState, i int) turn {
	for j, other := range nodes {
		if wave(other.Node) >= wave(nodes[i].Node) || states[j].State == run.Ready {
			continue
		}
		switch state := states[j].State; {
		case other.Node.Bootstrap && state.Final():
			return turn{never: fmt.Sprintf("%s, which bootstraps the cluster, is %s: provision the lot again when it is mended", other.Node.Name, state)}
		case other.Node.Bootstrap, state == run.Queued, state == run.Running:
			return turn{wait: true}
		}
	}
	return turn{}
}
