package activities

import (
	"context"
	"time"
)

const (
	// turnsAtOnce is how many machines get their agent at once. Each takes the
	// worker's processor and uplink: of a thousand that boot together, those whose
	// turn it is are through soon, and nodes in other phases wait for few.
	turnsAtOnce = 32
	// longestTurn is how long a machine waits for its turn at most: those before it
	// may hang.
	longestTurn = 20 * time.Second
)

// turns lets a few at a time do what takes much of a worker.
type turns chan struct{}

// take waits for a turn, and goes on without one when that takes too long or
// the context ends. The turn is over when it is released.
func (t turns) take(ctx context.Context, atMost time.Duration) (release func()) {
	late := time.NewTimer(atMost)
	defer late.Stop()
	select {
	case t <- struct{}{}:
		return func() { <-t }
	case <-late.C:
	case <-ctx.Done():
	}
	return func() {}
}
