package track

import (
	"time"

	"github.com/ironlot/ironlot/internal/run"
)

// NewerRun is a later run on a server: of another lot, mostly, which has or had
// the server since.
type NewerRun struct {
	Lot     string    `json:"lot"`
	Node    string    `json:"node"` // as that lot calls it
	State   run.State `json:"state"`
	Phase   run.Phase `json:"phase,omitempty"` // that it is in, or came to
	Started time.Time `json:"started"`
	RunID   string    `json:"runId"`
}

// Reinstalled reports whether the server has become the node of that run.
func (n NewerRun) Reinstalled() bool { return n.State == run.Ready && n.Phase != run.Preflight }

func (r nodeRun) newer() *NewerRun {
	return &NewerRun{Lot: r.lot, Node: r.node, State: r.state, Phase: r.phase, Started: r.started, RunID: r.runID}
}

// newest keeps of each server, by its workflow ID, the run that counts most
// against what earlier ones have left there. It sees them the newest first.
type newest map[string]nodeRun

// see takes a run. One that has found the node Ready and left it alone changes
// nothing. One that has not got beyond preflight gives way to an earlier one
// that has: it may have come to nothing.
func (n newest) see(r nodeRun) {
	if r.state == run.Ready && r.phase == run.Preflight {
		return
	}
	known, seen := n[r.workflowID]
	if !seen || known.phase == run.Preflight && r.phase != run.Preflight {
		n[r.workflowID] = r
	}
}

// of is the newer run on a server, seen from a lot; nil: there is none, or it is
// the lot's own.
func (n newest) of(workflowID, lot string) *NewerRun {
	r, ok := n[workflowID]
	if !ok || r.lot == lot {
		return nil
	}
	return r.newer()
}
