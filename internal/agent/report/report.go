// Package report is how a job of the agent tells what it does.
package report

import (
	"sync"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// Reporter takes what a job does while it does it. It is called from several
// goroutines at once and must not block for long.
type Reporter interface {
	Progress(api.Progress)
	Log(api.LogEntry)
}

// Discard is a Reporter that keeps nothing.
type Discard struct{}

// Progress does nothing.
func (Discard) Progress(api.Progress) {}

// Log does nothing.
func (Discard) Log(api.LogEntry) {}

// Log reports one entry with the time of now. Events are saw, plan, ran, did.
func Log(r Reporter, event, text string) {
	r.Log(api.LogEntry{At: time.Now().UTC(), Event: event, Text: text})
}

// every is how often a Meter reports at most.
const every = 500 * time.Millisecond

// Meter turns bytes into progress reports: one at the start, one at the end
// and at most two a second between them. It is safe for concurrent use.
type Meter struct {
	to    Reporter
	mu    sync.Mutex
	now   api.Progress
	since time.Time // of the last report
	done  int64     // at the last report
}

// NewMeter starts a step of total bytes (0 unknown) and reports it.
func NewMeter(to Reporter, step string, total int64) *Meter {
	m := &Meter{to: to, now: api.Progress{Step: step, Total: max(total, 0)}, since: time.Now()}
	to.Progress(m.now)
	return m
}

// Add counts bytes.
func (m *Meter) Add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(m.now.Done + n)
}

// Set says how many bytes are done in all.
func (m *Meter) Set(done int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(done)
}

// End reports the step as it stands.
func (m *Meter) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to.Progress(m.now)
}

func (m *Meter) advance(done int64) {
	m.now.Done = done
	passed := time.Since(m.since)
	if passed < every {
		return
	}
	m.now.Rate = float64(done-m.done) / passed.Seconds()
	m.since, m.done = time.Now(), done
	m.to.Progress(m.now)
}
