package run

import "time"

// Time limits that the workflows set and the activities keep to.
const (
	// HeartbeatTimeout is after how long a dead worker is noticed, while no more
	// than some hundred nodes are at work.
	HeartbeatTimeout = 30 * time.Second
	// timeoutPerNode keeps Temporal from the writes of a thousand nodes'
	// heartbeats, and a worker that is only busy from counting as dead.
	timeoutPerNode = 100 * time.Millisecond
	longestTimeout = 5 * time.Minute
	// AttemptGrace is how much later than an activity's own bound the server
	// ends an attempt that does not end itself and say what it waited for.
	AttemptGrace = 5 * time.Minute
)

// HeartbeatTimeoutOf is after how long a dead worker is noticed when so many
// nodes of a lot are at work together.
func HeartbeatTimeoutOf(together int) time.Duration {
	return min(max(HeartbeatTimeout, time.Duration(together)*timeoutPerNode), longestTimeout)
}
