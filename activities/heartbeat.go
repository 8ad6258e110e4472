package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// beatEvery keeps the heartbeat going while nothing changes.
const beatEvery = 5 * time.Second

// beat is an activity's heartbeat: what it does now, and what a later
// attempt must know. The zero value tells nobody.
type beat struct {
	ctx    context.Context // nil: nobody is told
	cancel context.CancelCauseFunc
	record func(ctx context.Context, taskToken []byte, details ...any) error
	pace   *pace
	within time.Duration // the heartbeat timeout
	until  time.Time     // the bound of the attempt
	done   chan struct{}
	ended  sync.WaitGroup

	sending  sync.Mutex // held while details are handed over, so that they stay in order
	mu       sync.Mutex
	progress run.Progress
	try      int       // the how-manyth job, 0: none yet
	news     bool      // it has changed since the last heartbeat
	last     time.Time // heartbeat, or the attempt's start: a short one needs none
}

// startBeat starts the heartbeat of an attempt, with what the attempt before
// left behind. The context ends when Temporal cancels the activity or the
// worker stops; its cause tells which.
func (a *Activities) startBeat(ctx context.Context) (context.Context, *beat) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &beat{ctx: ctx, cancel: cancel, record: a.record, pace: a.pace, within: activity.GetInfo(ctx).HeartbeatTimeout, until: bound(ctx), done: make(chan struct{}), last: time.Now()}
	b.pace.atWork.Add(1)
	if activity.HasHeartbeatDetails(ctx) {
		var last run.Progress
		if activity.GetHeartbeatDetails(ctx, &last) == nil {
			b.progress.Intent = last.Intent
		}
	}
	b.ended.Go(func() { b.keepAlive(activity.GetWorkerStopChannel(ctx)) })
	return ctx, b
}

func (b *beat) keepAlive(workerStops <-chan struct{}) {
	again := time.NewTimer(b.every())
	defer again.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-workerStops:
			b.cancel(errWorkerStops)
			return
		case <-again.C:
			if b.due() {
				b.send()
			}
			again.Reset(b.every())
		}
	}
}

// due reports whether it is time for a heartbeat.
func (b *beat) due() bool {
	if b.ctx == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	since := time.Since(b.last)
	every := b.every()
	return b.news && since >= every || since >= max(beatEvery, every)
}

// every is how long it waits between heartbeats that tell something new.
func (b *beat) every() time.Duration { return b.pace.beat(b.within) }

func (b *beat) stop() {
	close(b.done)
	b.ended.Wait()
	b.pace.atWork.Add(-1)
	if b.intent() != nil {
		b.send() // the SDK's last word on an attempt that fails
	}
	b.cancel(nil)
}

// set shows what the activity does now, at the pace that all keep to.
func (b *beat) set(p run.Progress) {
	b.mu.Lock()
	old := b.progress
	b.news = b.news || p.Step != old.Step || b.try > max(1, old.Try) || p.Done != old.Done || !slices.Equal(p.Unmet, old.Unmet)
	p.Intent, p.Until, p.At = old.Intent, b.until, time.Now().UTC()
	if b.try > 1 {
		p.Try = b.try
	}
	b.progress = p
	b.mu.Unlock()
	if b.due() {
		b.send()
	}
}

// tries notes which of a phase's jobs is at work: those before it have failed.
func (b *beat) tries(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.try = n
}

// step shows what the activity does now, in a few words.
func (b *beat) step(text string) { b.set(run.Progress{Step: text}) }

func (b *beat) send() {
	b.sending.Lock()
	defer b.sending.Unlock()
	b.mu.Lock()
	p := b.progress
	b.news, b.last = false, time.Now()
	b.mu.Unlock()
	if b.ctx != nil {
		activity.RecordHeartbeat(b.ctx, p)
	}
}

// intent is the request that an earlier attempt recorded, nil when none did.
func (b *beat) intent() *run.Intent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.progress.Intent
}

// commit writes an intent to Temporal and returns when it is kept there. The
// SDK gets it as well: it may still hold back details of a moment ago, and
// would write those over the intent when the attempt fails.
func (b *beat) commit(ctx context.Context, it *run.Intent) error {
	b.sending.Lock()
	defer b.sending.Unlock()
	b.mu.Lock()
	b.progress.Intent, b.progress.At = it, time.Now().UTC()
	p := b.progress
	b.mu.Unlock()
	activity.RecordHeartbeat(b.ctx, p)
	if err := b.record(ctx, activity.GetInfo(ctx).TaskToken, p); err != nil {
		return fault.Retry("Temporal did not record the intent to %s, so it was not asked for: %w", action(it), err)
	}
	return nil
}

func action(it *run.Intent) string {
	if it == nil {
		return "go on"
	}
	return it.Action
}

// bound is when the attempt must have ended by itself.
func bound(ctx context.Context) time.Time {
	return activity.GetInfo(ctx).Deadline.Add(-run.AttemptGrace)
}
