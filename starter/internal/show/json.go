package show

import (
	"time"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Events tells programs whenever a node's state, phase or attempt
// changes.
type Events struct {
	Encode func(any) error
	memory
}

// Silent implements Watcher.
func (v *Events) Silent(s Silence, now time.Time) error {
	if !v.silence(true) {
		return nil
	}
	return v.Encode(Event{Event: eventTemporal, Time: now.UTC(), Lot: s.Lot, Reason: s.Why(), Since: s.Since.UTC()})
}

// eventTemporal is that Temporal ceases to answer, with the reason, or answers
// again.
const eventTemporal = "temporal"

// Event is what happened to a node.
type Event struct {
	Event     string        `json:"event"` // node, lot or temporal
	Time      time.Time     `json:"time"`
	Lot       string        `json:"lot"`
	Node      string        `json:"node,omitempty"`
	State     run.State     `json:"state,omitempty"`
	Phase     run.Phase     `json:"phase,omitempty"`
	Attempt   int32         `json:"attempt,omitempty"`
	Aborting  bool          `json:"aborting,omitempty"` // its end is asked for and is not there yet
	Reason    string        `json:"reason,omitempty"`
	Waits     string        `json:"waits,omitempty"` // why it does not go on although nothing failed on the machine; of a lot: why nodes wait
	Progress  *run.Progress `json:"progress,omitempty"`
	Since     time.Time     `json:"since,omitzero"`   // of the last answer of a Temporal that does not answer
	Paused    *run.Pause    `json:"paused,omitempty"` // of a lot: why it starts no further node
	Simulated bool          `json:"simulated,omitempty"`
}

// Show implements Watcher.
func (v *Events) Show(l track.Lot, now time.Time) error {
	if v.silence(false) {
		if err := v.Encode(Event{Event: eventTemporal, Time: now.UTC(), Lot: l.Name, Simulated: l.Lab}); err != nil {
			return err
		}
	}
	if v.turned(l) {
		waits := ""
		if l.Paused == nil { // which tells it all
			waits = queueText(l)
		}
		if err := v.Encode(Event{Event: "lot", Time: now.UTC(), Lot: l.Name, Reason: l.Failing, Waits: waits, Paused: l.Paused, Simulated: l.Lab}); err != nil {
			return err
		}
	}
	for _, n := range l.Nodes {
		if !v.changed(n) {
			continue
		}
		event := Event{
			Event: "node", Time: now.UTC(), Lot: l.Name, Node: n.Node.Name, State: n.State, Phase: n.Phase,
			Attempt: n.Attempt, Aborting: n.Aborting, Reason: n.Reason, Waits: n.Waits, Progress: n.Progress, Simulated: l.Lab,
		}
		if err := v.Encode(event); err != nil {
			return err
		}
	}
	return nil
}

// Close implements Watcher.
func (v *Events) Close() error { return nil }

// Result is the last event: how the lot ended.
type Result struct {
	Event     string       `json:"event"` // result
	Time      time.Time    `json:"time"`
	Lot       string       `json:"lot"`
	Nodes     []NodeResult `json:"nodes"`
	Failing   string       `json:"failing,omitempty"` // why no worker gets the lot's workflow any further
	Held      string       `json:"held,omitempty"`    // why queued nodes do not start before a person has done something
	Waits     []track.Wait `json:"waits,omitempty"`   // why queued nodes are not started yet
	Paused    *run.Pause   `json:"paused,omitempty"`
	WebUI     string       `json:"webUI,omitempty"`
	Simulated bool         `json:"simulated,omitempty"`
}

// NodeResult is a node's part of the result.
type NodeResult struct {
	Node     string                `json:"node"`
	Server   string                `json:"server"`
	ServerID string                `json:"serverId"`
	Workflow string                `json:"workflow"`
	RunID    string                `json:"runId,omitempty"` // of the workflow; empty: not started
	State    run.State             `json:"state"`
	Phase    run.Phase             `json:"phase,omitempty"`
	Aborting bool                  `json:"aborting,omitempty"`
	Reason   string                `json:"reason,omitempty"`
	Remedy   string                `json:"remedy,omitempty"`
	Newer    *track.NewerRun       `json:"newer,omitempty"`   // a later run of another lot on the server
	Earlier  bool                  `json:"earlier,omitempty"` // an earlier run of the lot has left it so: its last one leaves it alone
	Seconds  float64               `json:"seconds,omitempty"`
	Phases   map[run.Phase]float64 `json:"phases,omitempty"` // seconds, all passes
}

// ResultOf sums a lot up.
func ResultOf(l track.Lot, webUI string, now time.Time) Result {
	result := Result{Event: "result", Time: now.UTC(), Lot: l.Name, Failing: l.Failing, Held: l.Held, Waits: l.Waits, Paused: l.Paused, WebUI: webUI, Simulated: l.Lab, Nodes: []NodeResult{}}
	for _, n := range l.Nodes {
		r := NodeResult{
			Node: n.Node.Name, Server: n.Node.ServerName, ServerID: n.Node.ServerID, Workflow: n.WorkflowID, RunID: n.RunID,
			State: n.State, Phase: n.Phase, Aborting: n.Aborting, Reason: n.Reason, Remedy: remedy(n), Newer: n.Newer, Earlier: n.Earlier,
		}
		if s := n.Status; s != nil {
			end := now
			if !s.Ended.IsZero() {
				end = s.Ended
			}
			r.Seconds, r.Phases = end.Sub(s.Started).Seconds(), map[run.Phase]float64{}
			for _, p := range s.Timeline {
				if p.Ended.IsZero() {
					p.Ended = now
				}
				r.Phases[p.Phase] += p.Ended.Sub(p.Started).Seconds()
			}
		}
		result.Nodes = append(result.Nodes, r)
	}
	return result
}
