package run

// PhaseInput is what every phase's activity gets.
type PhaseInput struct {
	Node  Node  `json:"node"`
	Facts Facts `json:"facts"`
	// Key names this pass through the phase: all attempts of the activity
	// share it, a later pass has another.
	Key string `json:"key"`
	// Run is the ID of the run, the same over resets of its workflow, and Pass
	// counts its passes through phases. Together they fence the machine: it
	// takes no new job of another run, nor of an earlier pass.
	Run  string `json:"run,omitempty"`
	Pass int    `json:"pass,omitempty"`
	// Boots is how often the boot that is wanted now has failed to come.
	Boots int `json:"boots,omitempty"`
	// Keep lets preflight leave a node alone that is Ready with the lot's
	// config already: the lot is run again.
	Keep bool `json:"keep,omitempty"`
	// LotRun is the run of the lot that stage asks for the lot's image, see
	// NodeInput; empty: the one that is at work.
	LotRun string `json:"lotRun,omitempty"`
	// TakesConfig is set for the phases that need the config: they fetch it
	// from the run's input, the first event of its history, so that the
	// history holds it once.
	TakesConfig bool `json:"takesConfig,omitempty"`
	// Sealed takes the place of what the run's input holds: a retry has
	// corrected it, or there is no run (CheckLot).
	Sealed *Sealed `json:"sealed,omitempty"`
}

// PhaseOutput is what every phase's activity proved.
type PhaseOutput struct {
	Facts   Facts  `json:"facts"`   // that are new: see Facts.Since
	Summary string `json:"summary"` // one line for people
	// Log is what happened on the machine, a line for each thing that the
	// agent saw, decided, did or ran; its end when it is long.
	Log string `json:"log,omitempty"`
}

// ActivityStopJob is the activity that stops the machine's job after an abort.
const ActivityStopJob = "stop-remote-job"

// SignalNodeState tells a lot that one of its nodes changed its state.
const SignalNodeState = "node-state"

// ErrorDetails travel with every application error of an activity.
type ErrorDetails struct {
	Remedy string `json:"remedy,omitempty"`
	Tail   string `json:"tail,omitempty"`
}
