package provider

import (
	"sync"
	"time"
)

// Pace decides when calls to a provider may go out, for all that ask through
// it. The zero value lets them go as they come. It is safe for concurrent use.
type Pace struct {
	mu    sync.Mutex
	every time.Duration // between two calls
	next  time.Time     // the earliest moment for the next one
}

// Slow spaces calls out, so many of them per second; 0: as they come.
func (p *Pace) Slow(perSecond float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every = 0
	if perSecond > 0 {
		p.every = time.Duration(float64(time.Second) / perSecond)
	}
}

// hold lets no call out before now + d.
func (p *Pace) hold(now time.Time, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(d); until.After(p.next) {
		p.next = until
	}
}

// take reserves the next turn and gives how long it is away. With more than
// patience it reserves nothing, and reports false.
func (p *Pace) take(now time.Time, patience time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = max(0, p.next.Sub(now))
	if wait > patience {
		return wait, false
	}
	p.next = now.Add(wait + p.every)
	return wait, true
}
