package activities

import (
	"sync/atomic"
	"time"
)

// pace bounds what the activities of a worker do again and again, all of them
// together: a thousand nodes at work shall not cost Temporal and the worker ten
// times what a hundred do. Few activities go as fast as is useful.
type pace struct {
	atWork atomic.Int64 // activities
}

const (
	// beatsPerSecond bounds the heartbeats. Each is a write of Temporal's
	// database, and takes the server of `starter up` and the worker about 1.5 ms
	// of processor time.
	beatsPerSecond = 40
	beatFastest    = 2 * time.Second
	// beatsPerTimeout leaves room for lost heartbeats in an activity's heartbeat
	// timeout. It bounds how late a cancellation is seen.
	beatsPerTimeout = 3

	// knocksPerSecond bounds the looks at machines that do not answer yet.
	knocksPerSecond = 1000
	knockFastest    = 100 * time.Millisecond
	knockSlowest    = 2 * time.Second
)

// beat is how long an activity with this heartbeat timeout waits between
// heartbeats that tell something new.
func (p *pace) beat(timeout time.Duration) time.Duration {
	return p.share(beatsPerSecond, beatFastest, timeout/beatsPerTimeout)
}

// knock is how long an activity waits between looks at a machine.
func (p *pace) knock() time.Duration {
	return p.share(knocksPerSecond, knockFastest, knockSlowest)
}

// share is an activity's share of what all may do in a second.
func (p *pace) share(perSecond int64, fastest, slowest time.Duration) time.Duration {
	return max(fastest, min(time.Duration(p.atWork.Load())*time.Second/time.Duration(perSecond), slowest))
}
