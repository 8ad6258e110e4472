package run

import "time"

// Status answers the query "status" of ProvisionNode and is its result.
type Status struct {
	Node     Node          `json:"node"`
	State    State         `json:"state"`
	Phase    Phase         `json:"phase"`
	Since    time.Time     `json:"since"` // in this phase and state
	Started  time.Time     `json:"started"`
	Ended    time.Time     `json:"ended,omitzero"`
	Aborting bool          `json:"aborting,omitempty"` // its end is asked for and is not there yet
	Rewinds  int           `json:"rewinds,omitempty"`
	Facts    Facts         `json:"facts"`
	Problem  *Problem      `json:"problem,omitempty"` // why it is stuck or was aborted
	Notice   string        `json:"notice,omitempty"`  // a signal that was refused, and why
	Timeline []PhaseRecord `json:"timeline"`
}

// PhaseRecord is one pass through a phase.
type PhaseRecord struct {
	Phase   Phase     `json:"phase"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Summary string    `json:"summary,omitempty"` // one line: what was proved
	Class   string    `json:"class,omitempty"`   // error class, when it failed
	Error   string    `json:"error,omitempty"`
}

// Problem is what a person needs to know about a run that stopped.
type Problem struct {
	Phase   Phase  `json:"phase"`
	Class   string `json:"class"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	Tail    string `json:"tail,omitempty"` // end of the remote output
	Erased  string `json:"erased"`         // what is erased by now and what is not
	// Left is how an aborted run has left its server.
	Left Left `json:"left,omitempty"`
}

// Progress is an activity's heartbeat: what it does right now. Intent holds
// what a later attempt must know about an earlier one.
type Progress struct {
	Step   string    `json:"step"`             // short, for a status line
	Done   int64     `json:"done,omitempty"`   // bytes, or nodes of a check
	Total  int64     `json:"total,omitempty"`  // of the same, 0 unknown
	Rate   float64   `json:"rate,omitempty"`   // bytes per second
	Unmet  []string  `json:"unmet,omitempty"`  // conditions waited for
	Try    int       `json:"try,omitempty"`    // the how-manyth job of the phase's pass, when not the first
	Intent *Intent   `json:"intent,omitempty"` // recorded before the request is sent
	Until  time.Time `json:"until,omitzero"`   // when the attempt ends by itself at the latest
	At     time.Time `json:"at,omitzero"`
}

// Intent is a request that must not be sent twice, recorded with Temporal
// before it is sent.
type Intent struct {
	Action  string    `json:"action"` // for people
	At      time.Time `json:"at"`
	Attempt int32     `json:"attempt"`
	Sent    bool      `json:"sent"`           // it was accepted
	Stop    bool      `json:"stop,omitempty"` // asks to stop the server, the first half of a power cycle
	// What was seen before: the boot type that the provider showed, and the
	// boot that answered (empty when none did).
	BootType string `json:"bootType,omitempty"`
	Boot     string `json:"boot,omitempty"`
}

// Node control, by update (validated) or by plain signal of the same name.
const (
	UpdateRetry = "retry"
	UpdateAbort = "abort"
	QueryStatus = "status"
)

// RetryRequest asks a stuck run to go on. An empty From means the phase
// that is stuck.
type RetryRequest struct {
	From   Phase  `json:"from,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Input takes the place of the run's input. The run goes back to
	// preflight, which checks it, and from there to what the change concerns.
	// Secrets that it leaves out stay as they are.
	Input *NodeInput `json:"input,omitempty"`
	// AnotherDisk allows Input to choose another system disk although the run
	// may have erased the one that it chose before.
	AnotherDisk bool `json:"anotherDisk,omitempty"`
}

// AbortRequest asks a run to stop and leave the server as it is. A lot takes it
// for a node that it has not started yet, which Node names.
type AbortRequest struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"` // see Who
	Node   string `json:"node,omitempty"`
}

// NodeInput starts ProvisionNode.
type NodeInput struct {
	Node   Node   `json:"node"`
	Sealed Sealed `json:"sealed,omitzero"`
	// Together is how many nodes of the lot may be at work at once; 0: this one.
	Together int `json:"together,omitempty"`
	// LotRun is the ID of the first run of the lot's workflow that started this
	// one, set by it: a later run of the lot is another, with an image of its own.
	LotRun string `json:"lotRun,omitempty"`
}

// LotInput starts ProvisionLot.
type LotInput struct {
	Lot     string      `json:"lot"`
	Rollout Rollout     `json:"rollout,omitzero"`
	Nodes   []NodeInput `json:"nodes"` // see Node
	// Common and Shared hold what the nodes have in common, see Share.
	Common Node              `json:"common,omitzero"`
	Shared map[string]string `json:"shared,omitempty"`
	// Others are nodes of the lot that no input is for: this run leaves them
	// alone, see LeftAlone.
	Others []Other `json:"others,omitempty"`
	// Progress is set when the workflow continues as new.
	Progress *LotProgress `json:"progress,omitempty"`
}

// LotStatus answers the query "status" of ProvisionLot and is its result.
type LotStatus struct {
	Lot    string      `json:"lot"`
	Nodes  []NodeState `json:"nodes"`
	Paused *Pause      `json:"paused,omitempty"`
	// Held says in one sentence why queued nodes do not start before a person
	// has done something; empty when they do.
	Held   string    `json:"held,omitempty"`
	Waits  []Wait    `json:"waits,omitempty"` // why queued nodes are not started yet, with room or without
	Image  *LotImage `json:"image,omitempty"`
	Others int       `json:"others,omitempty"` // how many nodes of the lot this run leaves alone
}

// NodeState is a node's line in its lot.
type NodeState struct {
	Name       string `json:"name"`
	WorkflowID string `json:"workflowId"`
	State      State  `json:"state"`
	Reason     string `json:"reason,omitempty"`
}
