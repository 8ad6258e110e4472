// Package history reads the story of a run from its Temporal history alone
// and tells it: as a value, as Markdown, as a self-contained HTML page.
package history

import (
	"time"

	"github.com/ironlot/ironlot/internal/run"
)

// Report is the story of one run. Nothing in it is secret.
type Report struct {
	WorkflowID string    `json:"workflowId"`
	RunID      string    `json:"runId"`
	Node       run.Node  `json:"node"`
	State      run.State `json:"state"`
	Started    time.Time `json:"started"`
	Ended      time.Time `json:"ended,omitzero"` // zero while it runs
	Read       time.Time `json:"read"`           // until when it is told: the last event, or now while it runs
	Passes     []Pass    `json:"passes"`
	Steers     []Steer   `json:"steers,omitempty"`
	Facts      run.Facts `json:"facts"`
	// Problem is the last thing that stopped the run, nil when nothing did.
	Problem *run.Problem `json:"problem,omitempty"`
	Lost    Lost         `json:"lost"`
	Events  int          `json:"events"` // in the history
	Bytes   int          `json:"bytes"`  // of the history as Temporal keeps it
}

// Outcome is how a pass through a phase ended.
type Outcome string

// The outcomes.
const (
	Proved   Outcome = "proved"
	Failed   Outcome = "failed"
	Canceled Outcome = "canceled"
	Open     Outcome = "open" // it was still at work when the history was read
)

// Pass is one pass through a phase, with all attempts of its activity.
type Pass struct {
	Phase    run.Phase `json:"phase"`
	Number   int       `json:"number"` // from 1, of this phase
	Asked    time.Time `json:"asked"`  // scheduled
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Attempts int32     `json:"attempts"`
	Worker   string    `json:"worker,omitempty"` // identity, of the last attempt
	Outcome  Outcome   `json:"outcome"`
	Summary  string    `json:"summary,omitempty"` // what was proved
	Class    string    `json:"class,omitempty"`   // error class, when it failed
	Message  string    `json:"message,omitempty"`
	Remedy   string    `json:"remedy,omitempty"`
	Log      string    `json:"log,omitempty"`     // what happened on the machine, its end
	Earlier  string    `json:"earlier,omitempty"` // how the attempt before the last one failed
}

// Took is how long the pass lasted; an open one until the history was read.
func (p Pass) Took(read time.Time) time.Duration {
	if p.Ended.IsZero() {
		return read.Sub(p.Asked)
	}
	return p.Ended.Sub(p.Asked)
}

// Steer is a person's wish.
type Steer struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`         // retry, abort, cancel, terminate; of a lot also pause, resume, add
	By   string    `json:"by,omitempty"` // who asked, as Temporal was told
	Text string    `json:"text,omitempty"`
}

// Lost is where a run lost time (JSON: nanoseconds).
type Lost struct {
	Person  time.Duration `json:"person"`  // stuck, waiting for a person
	Failed  time.Duration `json:"failed"`  // in passes that failed
	Retried time.Duration `json:"retried"` // in passes that were proved, before their last attempt began
	Workers time.Duration `json:"workers"` // no worker took the work
}

// Lot is the story of a lot's nodes.
type Lot struct {
	Name   string   `json:"name"`
	Nodes  []Report `json:"nodes"`
	Steers []Steer  `json:"steers,omitempty"` // what people wished of the lot as a whole
	// Paused is why the lot starts no further node, nil: it is not paused, or
	// no worker told.
	Paused *run.Pause `json:"paused,omitempty"`
	Notes  []string   `json:"notes,omitempty"` // what of the lot's own story is missing
}
