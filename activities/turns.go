package activities

import (
	"context"
	"sync"
	"time"
)

const (
	// turnsAtOnce is how many machines get their agent at once. Each takes the
	// worker's processor, memory and uplink: of a thousand that boot together, those
	// whose turn it is are through soon, and nodes in other phases wait for few.
	turnsAtOnce = 32
	// longestTurn is how long a machine keeps others waiting: it may hang.
	longestTurn = 30 * time.Second
	// longestQueue is how long a machine waits for its turn at most. Its boot is
	// not given that much more time.
	longestQueue = time.Minute
)

// turns lets a few at a time do what takes much of a worker.
type turns chan struct{}

// take waits for a turn, and goes on without one when that takes too long or
// the context ends. The turn is over when it is released, or has been long.
func (t turns) take(ctx context.Context, queue, turn time.Duration) (release func()) {
	late := time.NewTimer(queue)
	defer late.Stop()
	select {
	case t <- struct{}{}:
		over := sync.OnceFunc(func() { <-t })
		long := time.AfterFunc(turn, over)
		return func() {
			long.Stop()
			over()
		}
	case <-late.C:
	case <-ctx.Done():
	}
	return func() {}
}
