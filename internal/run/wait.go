package run

import (
	"fmt"

	"github.com/ironlot/ironlot/internal/clip"
)

// Cause is what keeps queued nodes of a lot from being started.
type Cause string

// The causes, in the order in which they are looked for: a node waits for the
// first one that holds it.
const (
	WaitsForResume        Cause = "paused"
	WaitsForCanary        Cause = "canary"
	WaitsForBootstrap     Cause = "bootstrap"
	WaitsForControlPlanes Cause = "control-planes"
	WaitsForRoom          Cause = "parallel"
)

// Wait is why some of a lot's queued nodes are not started yet.
type Wait struct {
	Cause Cause    `json:"cause"`
	For   []string `json:"for,omitempty"`   // the nodes that they wait for
	Stuck []string `json:"stuck,omitempty"` // those of them that are stuck
	Room  int      `json:"room,omitempty"`  // how many may be at work at once
	Nodes []int    `json:"nodes"`           // the queued ones, by their index in the lot
}

// Why says it as a clause that follows "because". The pause is the lot's.
func (w Wait) Why(p *Pause) string {
	switch w.Cause {
	case WaitsForResume:
		if p == nil {
			return "the lot is paused"
		}
		return "the lot is " + p.String()
	case WaitsForCanary:
		return w.these("the canary ", "the canaries ", "")
	case WaitsForBootstrap:
		return w.these("", "", ", which bootstraps the cluster,")
	case WaitsForControlPlanes:
		return w.these("the control plane ", "the control planes ", "")
	case WaitsForRoom:
		return fmt.Sprintf("%d may be at work at once (rollout.parallel)", w.Room)
	default:
		return string(w.Cause) // of a later release
	}
}

// these names the nodes that are waited for: of several the stuck ones, if
// there are any, for the others go on by themselves.
func (w Wait) these(one, more, what string) string {
	names, is, are := w.For, "is not Ready yet", "are not Ready yet"
	if len(w.Stuck) > 0 {
		names, is, are = w.Stuck, "is stuck", "are stuck"
	}
	if len(names) == 1 {
		return one + names[0] + what + " " + is
	}
	return more + clip.Names(names) + what + " " + are
}
