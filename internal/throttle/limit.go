// Package throttle slows the provider's task queue down, over all workers,
// while the provider asks for it: how far is decided here, and kept in
// Temporal, so that workers need not know each other.
package throttle

import (
	"fmt"
	"strings"
	"time"
)

const (
	// leastRate is the slowest that the queue becomes, in activities per
	// second: a lot goes on, and its runs notice when the provider is content.
	leastRate = 0.5
	// burst is how long several answers count as one: those to requests that
	// were on their way when the first one came.
	burst = 10 * time.Second
	// easeAfter is how long the provider must have been content before the
	// queue becomes faster, and then faster again.
	easeAfter = 30 * time.Second
)

// The reasons mark a limit of ours in Temporal, which shows them. A limit
// with another reason is a person's, and left alone.
const (
	ours        = "ironlot: "
	brakeReason = ours + "the provider answers 429 (too many requests)"
	easeReason  = ours + "the provider has not answered 429 (too many requests) for a while"
)

// Limit is what somebody has limited the provider's task queue to.
type Limit struct {
	Set     bool
	Rate    float64   // activities per second over all workers; 0 stops the queue
	Reason  string    // as given by whoever set it
	Updated time.Time // by Temporal's clock; zero: never
}

// Ours reports whether the limit is the workers' own, not a person's.
func (l Limit) Ours() bool { return strings.HasPrefix(l.Reason, ours) }

// String tells people of the limit.
func (l Limit) String() string {
	if !l.Set {
		return "no limit"
	}
	return fmt.Sprintf("%.4g phases a second over all workers (%s)", l.Rate, strings.TrimPrefix(l.Reason, ours))
}

// Next gives the limit that is to stand instead, and whether it must be
// written: half as much when the provider asks to slow down, twice as much
// when it has not for a while, none when that is the full rate. At the floor
// another 429 writes the same limit again, so that no worker eases it. Two
// workers that decide at once decide the same.
//
// Age is how long the limit has stood, by the clock of whoever asks: clocks
// of workers and of Temporal differ.
func (l Limit) Next(throttled bool, age time.Duration, full float64) (Limit, bool) {
	least := min(leastRate, full)
	brake := func(rate float64) (Limit, bool) {
		return Limit{Set: true, Rate: max(rate/2, least), Reason: brakeReason}, true
	}
	easing := l.Reason == easeReason
	switch {
	case l.Set && !l.Ours():
		return l, false
	case throttled && !l.Set:
		return brake(full)
	case throttled && (easing || age >= burst):
		return brake(min(l.Rate, full))
	case throttled, !l.Set, age < easeAfter:
		return l, false
	case 2*l.Rate >= full:
		return Limit{Reason: easeReason}, true
	default:
		return Limit{Set: true, Rate: 2 * l.Rate, Reason: easeReason}, true
	}
}
