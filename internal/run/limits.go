package run

import "time"

// Time limits that the workflows set and the activities keep to.
const (
	// HeartbeatTimeout is after how long a dead worker is noticed.
	HeartbeatTimeout = 30 * time.Second
	// AttemptGrace is how much later than an activity's own bound the server
	// ends an attempt that does not end itself and say what it waited for.
	AttemptGrace = 5 * time.Minute
)
