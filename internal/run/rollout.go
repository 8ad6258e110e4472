package run

import "time"

// Rollout says how a lot is worked through. The zero value starts every node
// at once and never stops by itself.
type Rollout struct {
	Parallel int `json:"parallel,omitempty"` // nodes at work at once, 0: all
	// Canary is how many nodes, the first ones in the lot's order, must be
	// Ready before any other node starts.
	Canary int `json:"canary,omitempty"`
	// MaxStuck is how many nodes may be stuck at once; with more of them the
	// lot pauses itself. Nil: it never does.
	MaxStuck *int `json:"maxStuck,omitempty"`
}

// Steering of a lot, by update (validated). Pause and resume are also taken
// as plain signals of the same names. UpdateAbort is taken by a lot too, for a
// node that it has not started.
const (
	UpdatePause  = "pause"  // PauseRequest: no further node starts
	UpdateResume = "resume" // ResumeRequest: nodes start again
	UpdateAdd    = "add"    // LotInput with the nodes to add
	UpdateImage  = "image"  // LotImage, see there
)

// SignalContinued tells a node that the lot's workflow has continued as new:
// Temporal reports the node's end to the earlier run alone, so the node tells
// the lot itself.
const SignalContinued = "lot-continued"

// PauseRequest asks a lot to start no further node.
type PauseRequest struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"` // see Who
}

// ResumeRequest asks a paused lot to start nodes again.
type ResumeRequest struct {
	Reason string `json:"reason,omitempty"`
}

// Pause is why and since when a lot starts no further node. Nodes at work go
// on.
type Pause struct {
	Reason string    `json:"reason"`
	By     string    `json:"by,omitempty"` // see Who
	At     time.Time `json:"at"`
	Itself bool      `json:"itself,omitempty"` // the lot did it, by its rollout
}

// PausedByPerson is the reason of a pause for which a person gave none.
const PausedByPerson = "a person has paused it"

// String says who has paused the lot, and why.
func (p Pause) String() string {
	switch {
	case p.Itself:
		return "paused by itself: " + p.Reason
	case p.Reason == PausedByPerson:
		return "paused by " + Who(p.By)
	default:
		return "paused by " + Who(p.By) + ": " + p.Reason
	}
}

// LotImage is the raw image of a lot whose file names no digest: the bytes
// that the first node has staged. The first node's update sets it. Later ones
// are refused with ImageKnown, and an update that is refused leaves nothing in
// the lot's history.
type LotImage struct {
	RawSHA256 string `json:"rawSha256"`
	Node      string `json:"node"` // that staged it first
	URL       string `json:"url,omitempty"`
}

// ImageKnown is the type of the application error that refuses UpdateImage;
// its details are the LotImage that stands.
const ImageKnown = "ImageKnown"

// LotProgress is how far a lot has come when its workflow continues as new.
// Nodes are named by their index in the lot, so that ten thousand of them fit
// into Temporal's limit of 2 MiB.
type LotProgress struct {
	Runs    []string        `json:"runs"`              // IDs of the workflow's earlier runs
	States  map[State][]int `json:"states,omitempty"`  // of nodes that are not queued
	Reasons map[int]string  `json:"reasons,omitempty"` // see NodeState
	Paused  *Pause          `json:"paused,omitempty"`
	Image   *LotImage       `json:"image,omitempty"`
	Waived  Waiver          `json:"waived,omitzero"`
}

// Waiver is what a person has accepted by resuming a lot that had paused
// itself.
type Waiver struct {
	Canary bool `json:"canary,omitempty"` // a canary that cannot become Ready any more
	Stuck  int  `json:"stuck,omitempty"`  // so many nodes may be stuck
}
