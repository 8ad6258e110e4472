package workflows

import (
	"fmt"
	"slices"

	"github.com/ironlot/ironlot/internal/run"
)

// The waves in which a lot's nodes start. Nobody joins a cluster that is not
// bootstrapped, and workers need a control plane.
const (
	waveBootstrap = iota
	waveControlPlanes
	waveWorkers
	waveCount
)

// order is how a lot's nodes follow each other. The zero value is the lot's
// own order, in one wave.
type order struct {
	wave []int    // of each node
	turn []int    // the nodes in the order in which they start
	name []string // of the nodes
}

// orderOf gives the order of a lot's nodes: the one that bootstraps the
// cluster, the other control planes, the workers. Within a wave the lot's own
// order stays.
func orderOf(nodes []run.NodeInput) order {
	o := order{}
	for i, n := range nodes {
		o.wave = append(o.wave, waveOf(n.Node))
		o.turn = append(o.turn, i)
		o.name = append(o.name, n.Node.Name)
	}
	slices.SortStableFunc(o.turn, func(i, j int) int { return o.wave[i] - o.wave[j] })
	return o
}

func waveOf(n run.Node) int {
	switch {
	case n.Bootstrap:
		return waveBootstrap
	case n.ControlPlane:
		return waveControlPlanes
	default:
		return waveWorkers
	}
}

// gate says whether the nodes of a wave may start.
type gate struct {
	wait  bool
	on    []int  // the nodes that they wait for, of one wave
	stuck string // the stuck node that they wait for; empty: none is
	never string // why they can never start; empty: they can
}

// waitOn makes a node one that is waited for: the first wave that is not
// there yet is what the others wait for too.
func (g *gate) waitOn(o order, node int) {
	g.wait = true
	switch {
	case len(g.on) == 0 || o.wave[node] < o.wave[g.on[0]]:
		g.on = []int{node}
	case o.wave[node] == o.wave[g.on[0]]:
		g.on = append(g.on, node)
	}
}

// gates decides from the states of a lot's nodes which waves may start. All
// wait for the bootstrap to be Ready. Otherwise a wave waits only while a
// control plane of an earlier one is on its way: one that is stuck or has
// ended holds up nobody, for the cluster's other control planes take the
// nodes in.
func (o order) gates(states []run.NodeState) [waveCount]gate {
	var gates [waveCount]gate
	for j, wave := range o.wave {
		state := states[j].State
		if wave == waveWorkers || state == run.Ready {
			continue
		}
		for later := wave + 1; later < waveCount; later++ {
			g := &gates[later]
			switch {
			case wave == waveBootstrap && state.Final():
				g.never = fmt.Sprintf("%s, which bootstraps the cluster, is %s: provision the lot again when it is mended", o.name[j], state)
			case wave == waveBootstrap && state == run.Stuck:
				g.stuck = o.name[j]
				g.waitOn(o, j)
			case wave == waveBootstrap, state == run.Queued, state == run.Running:
				g.waitOn(o, j)
			}
		}
	}
	return gates
}

// of is the gate of a node.
func (o order) of(gates [waveCount]gate, node int) gate {
	if o.wave == nil {
		return gate{}
	}
	return gates[o.wave[node]]
}
