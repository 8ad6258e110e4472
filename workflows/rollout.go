package workflows

import (
	"fmt"

	"github.com/ironlot/ironlot/internal/run"
)

// rollout decides how a lot goes on, from what it was told and from how its
// nodes stand. Everything here is pure.
type rollout struct {
	run.Rollout
	nodes  []run.NodeState
	paused *run.Pause
	waived run.Waiver
	order  order
}

// inTurn gives the nodes in the order in which they start.
func (r rollout) inTurn() []int {
	if r.order.turn != nil {
		return r.order.turn
	}
	order := make([]int, len(r.nodes))
	for i := range order {
		order[i] = i
	}
	return order
}

// next gives the nodes that start now.
func (r rollout) next() []int {
	if r.paused != nil {
		return nil
	}
	room, rest, gates := r.room(), r.canariesReady(), r.order.gates(r.nodes)
	var start []int
	for turn, i := range r.inTurn() {
		if len(start) == room || turn >= r.Canary && !rest {
			break
		}
		if r.nodes[i].State == run.Queued && !r.order.of(gates, i).wait {
			start = append(start, i)
		}
	}
	return start
}

// barred gives the queued nodes that can never start, and why.
func (r rollout) barred() (nodes []int, why string) {
	gates := r.order.gates(r.nodes)
	for i, n := range r.nodes {
		if never := r.order.of(gates, i).never; never != "" && n.State == run.Queued {
			nodes, why = append(nodes, i), never
		}
	}
	return nodes, why
}

// room is how many more nodes may be at work. A stuck node waits for a
// person, and takes up no room.
func (r rollout) room() int {
	if r.Parallel <= 0 {
		return len(r.nodes)
	}
	return max(0, r.Parallel-r.count(run.Running))
}

// together is how many nodes may be at work at once.
func (r rollout) together() int {
	if r.Parallel <= 0 {
		return len(r.nodes)
	}
	return min(r.Parallel, len(r.nodes))
}

func (r rollout) count(s run.State) int {
	n := 0
	for i := range r.nodes {
		if r.nodes[i].State == s {
			n++
		}
	}
	return n
}

// canariesReady reports whether the nodes behind the canaries may start.
func (r rollout) canariesReady() bool {
	if r.waived.Canary {
		return true
	}
	for _, i := range r.canaries() {
		if r.nodes[i].State != run.Ready {
			return false
		}
	}
	return true
}

func (r rollout) canaries() []int { return r.inTurn()[:min(max(0, r.Canary), len(r.nodes))] }

// stops says why the lot has to pause itself; empty when it has not. A lot
// with no node left to start never has.
func (r rollout) stops() string {
	if r.paused != nil || r.count(run.Queued) == 0 {
		return ""
	}
	if stuck := r.count(run.Stuck); r.MaxStuck != nil && stuck > max(*r.MaxStuck, r.waived.Stuck) {
		return fmt.Sprintf("%d nodes are stuck, and the lot goes on with at most %d", stuck, *r.MaxStuck)
	}
	if r.waived.Canary {
		return ""
	}
	for _, i := range r.canaries() {
		if n := r.nodes[i]; n.State.Final() && n.State != run.Ready {
			return fmt.Sprintf("the canary %s is %s, so the nodes behind it wait", n.Name, n.State)
		}
	}
	return ""
}

// held says why queued nodes do not start although there is room; empty when
// they do.
func (r rollout) held() string {
	switch {
	case r.count(run.Queued) == 0:
		return ""
	case r.paused != nil:
		return r.paused.Reason
	}
	gates := r.order.gates(r.nodes)
	for i, n := range r.nodes {
		if stuck := r.order.of(gates, i).stuck; stuck != "" && n.State == run.Queued {
			return fmt.Sprintf("%s, which bootstraps the cluster, is stuck, so the nodes behind it wait", stuck)
		}
	}
	if r.canariesReady() {
		return ""
	}
	for _, i := range r.canaries() {
		if n := r.nodes[i]; n.State == run.Stuck {
			return fmt.Sprintf("the canary %s is stuck, so the nodes behind it wait", n.Name)
		}
	}
	return ""
}

// waits says why queued nodes are not started: for each cause the nodes that it
// holds. One for which there is a place starts within a moment, and is left out.
func (r rollout) waits() []run.Wait {
	var waits []run.Wait
	gates, room, rest := r.order.gates(r.nodes), r.room(), r.canariesReady()
	index := map[run.Cause]int{}
	for turn, i := range r.inTurn() {
		if r.nodes[i].State != run.Queued {
			continue
		}
		g := r.order.of(gates, i)
		cause := r.cause(g, turn < r.Canary || rest, room > 0)
		if cause == "" {
			continue
		}
		at, seen := index[cause]
		if !seen {
			at = len(waits)
			index[cause], waits = at, append(waits, r.wait(cause, g))
		}
		waits[at].Nodes = append(waits[at].Nodes, i)
	}
	return waits
}

// cause is what holds a queued node first; empty: nothing does.
func (r rollout) cause(g gate, mayGo, room bool) run.Cause {
	switch {
	case r.paused != nil:
		return run.WaitsForResume
	case !mayGo:
		return run.WaitsForCanary
	case g.wait && r.order.wave[g.on[0]] == waveBootstrap:
		return run.WaitsForBootstrap
	case g.wait:
		return run.WaitsForControlPlanes
	case !room:
		return run.WaitsForRoom
	default:
		return ""
	}
}

// wait tells of a cause which nodes must become Ready for it to pass, or how
// much room there is.
func (r rollout) wait(cause run.Cause, g gate) run.Wait {
	w, on := run.Wait{Cause: cause}, g.on
	switch cause {
	case run.WaitsForResume:
		return w
	case run.WaitsForRoom:
		w.Room = r.Parallel
		return w
	case run.WaitsForCanary:
		on = r.canaries()
	case run.WaitsForBootstrap, run.WaitsForControlPlanes:
	}
	for _, i := range on {
		n := r.nodes[i]
		if n.State != run.Ready {
			w.For = append(w.For, n.Name)
		}
		if n.State == run.Stuck {
			w.Stuck = append(w.Stuck, n.Name)
		}
	}
	return w
}

// waive is what a person accepts by resuming the lot as it stands.
func (r rollout) waive() run.Waiver {
	w := run.Waiver{Stuck: max(r.waived.Stuck, r.count(run.Stuck)), Canary: r.waived.Canary}
	for _, i := range r.canaries() {
		w.Canary = w.Canary || r.nodes[i].State.Final() && r.nodes[i].State != run.Ready
	}
	return w
}
