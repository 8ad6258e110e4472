package run

// PhaseInput is what every phase's activity gets.
type PhaseInput struct {
	Node  Node  `json:"node"`
	Facts Facts `json:"facts"`
	// Key names this pass through the phase: all attempts of the activity
	// share it, a later pass has another.
	Key string `json:"key"`
	// Sealed is set for the phases that need the config.
	Sealed *Sealed `json:"sealed,omitempty"`
}

// PhaseOutput is what every phase's activity proved.
type PhaseOutput struct {
	Facts   Facts  `json:"facts"`
	Summary string `json:"summary"` // one line for people
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
