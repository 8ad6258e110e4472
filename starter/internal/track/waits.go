package track

import (
	"fmt"
	"slices"
	"time"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/run"
)

// Wait is why some queued nodes of a lot are not started yet.
type Wait struct {
	Cause run.Cause `json:"cause"`
	Why   string    `json:"why"` // a clause that follows "because"
	// Remedy is what a person has to do; empty: they start by themselves.
	Remedy string   `json:"remedy,omitempty"`
	For    []string `json:"for,omitempty"` // the nodes that they wait for
	Nodes  []string `json:"nodes"`
}

// waitsOf says why nodes of a lot wait, from what its workflow tells.
func waitsOf(s run.LotStatus) []Wait {
	var waits []Wait
	for _, told := range s.Waits {
		w := Wait{Cause: told.Cause, Why: told.Why(s.Paused), For: told.For, Remedy: remedyOf(s.Lot, told)}
		for _, i := range told.Nodes {
			if i >= 0 && i < len(s.Nodes) {
				w.Nodes = append(w.Nodes, s.Nodes[i].Name)
			}
		}
		if len(w.Nodes) > 0 {
			waits = append(waits, w)
		}
	}
	return waits
}

// remedyOf is what lets the nodes start; empty: they do by themselves.
func remedyOf(lot string, w run.Wait) string {
	switch {
	case w.Cause == run.WaitsForResume:
		return fmt.Sprintf("let it start nodes again with `starter resume %s`", lot)
	case len(w.Stuck) == 0:
		return ""
	case len(w.Stuck) > 1:
		return fmt.Sprintf("`starter status %s` says of each what to do", lot)
	case w.Cause == run.WaitsForBootstrap:
		return fmt.Sprintf("let it go on with `starter retry %s %s`", lot, w.Stuck[0])
	default:
		return fmt.Sprintf("let it go on with `starter retry %[1]s %[2]s`, or do without it: `starter abort %[1]s %[2]s`, then `starter resume %[1]s`", lot, w.Stuck[0])
	}
}

// wait takes up why the lot's queued nodes wait, as its workflow has told, and
// tells it of each of them.
func (l *Lot) wait(s run.LotStatus) {
	l.Waits = waitsOf(s)
	why := map[string]string{}
	for i := range l.Waits {
		w := &l.Waits[i]
		if w.Cause == run.WaitsForControlPlanes && w.Remedy == "" {
			w.Remedy = l.unbootstrapped(w.For)
		}
		for _, name := range w.Nodes {
			why[name] = w.Why
		}
	}
	for i := range l.Nodes {
		if n := &l.Nodes[i]; n.State == run.Queued {
			n.Waits = why[n.Node.Name]
		}
	}
}

// longReady is how long a control plane waits to be Ready before somebody should
// think of its cluster.
const longReady = 3 * time.Minute

// unbootstrapped is what to do when the control planes that are waited for may
// themselves wait for the cluster: they have been in their last phase for long,
// none of the lot is Ready, and none bootstraps it. Empty: it is not so.
func (l *Lot) unbootstrapped(names []string) string {
	var last []string
	for _, n := range l.Nodes {
		switch {
		case n.Node.Bootstrap, n.Node.ControlPlane && n.State == run.Ready:
			return ""
		case n.Phase == run.WaitReady && n.Status != nil && time.Since(n.Status.Since) > longReady && slices.Contains(names, n.Node.Name):
			last = append(last, n.Node.Name)
		}
	}
	if len(last) == 0 {
		return ""
	}
	return fmt.Sprintf("no node of the lot bootstraps the cluster: when it is a new one, do it with `talosctl bootstrap` on one of %s", clip.Names(last))
}
