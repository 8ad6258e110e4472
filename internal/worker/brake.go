package worker

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.uber.org/zap"

	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/throttle"
)

const (
	// lookEvery is the pause between two looks at the limit, which another
	// worker may have changed, or which it may be time to ease.
	lookEvery = 15 * time.Second
	// callsPerPhase is how many calls a phase that asks the provider makes, or
	// a little less. What a limit lets through may be made at once.
	callsPerPhase = 4
)

// keeper keeps the limit of the provider's task queue.
type keeper interface {
	Read(ctx context.Context) (throttle.Limit, error)
	Write(ctx context.Context, l throttle.Limit) (throttle.Limit, error)
}

// brake slows the provider's task queue down for all workers when the
// provider asks one of them to, and this worker's calls with it. Every worker
// brakes, and every one eases: no limit stays because the one that set it died.
type brake struct {
	keeper keeper
	pace   *provider.Pace
	full   float64 // provider activities per second, when nothing is wrong
	log    *zap.Logger
	over   string        // whose calls are slowed down, for the log
	asked  chan struct{} // holds one wish to brake

	limit  throttle.Limit // as seen last
	since  time.Time      // when it was first seen, by this clock
	owed   bool           // the wish to brake could not be carried out yet
	failed bool           // the last look has failed, and the log says so
}

func newBrake(c Config) *brake {
	return &brake{
		keeper: throttle.Queue{Service: c.Temporal.WorkflowService(), Namespace: c.Namespace},
		pace:   &provider.Pace{}, full: c.Rate, log: c.Log, over: "all workers", asked: make(chan struct{}, 1),
	}
}

// press asks for less; it does not wait.
func (b *brake) press() {
	select {
	case b.asked <- struct{}{}:
	default: // it is asked for already
	}
}

// run brakes and eases until the context ends.
func (b *brake) run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	b.look(ctx, time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.asked:
			b.ask(ctx, time.Now())
		case <-look.C:
			b.look(ctx, time.Now())
		}
	}
}

// ask brakes, unless what is known of the limit tells that it would not.
func (b *brake) ask(ctx context.Context, now time.Time) {
	if _, write := b.limit.Next(true, now.Sub(b.since), b.full); write {
		b.owed = true
		b.look(ctx, now)
	}
}

// look brings the limit to what it should be now. While Temporal does not
// answer, what this worker knows stands.
func (b *brake) look(ctx context.Context, now time.Time) {
	err := b.adjust(ctx, now)
	if refused(err) {
		b.log.Warn("Temporal does not let this worker limit the provider's task queue (its server is older than 1.29, or the worker's key may not): "+
			"when the provider answers 429, each worker slows its own calls down alone", zap.Error(err))
		b.keeper, b.over, b.limit = &alone{}, "this worker", throttle.Limit{}
		err = b.adjust(ctx, now)
	}
	if err != nil && !b.failed && ctx.Err() == nil {
		b.log.Warn("the limit of the provider's task queue cannot be looked at; it will be tried again", zap.Error(err))
	}
	b.failed = err != nil
}

func (b *brake) adjust(ctx context.Context, now time.Time) error {
	stands, err := b.keeper.Read(ctx)
	if err != nil {
		return err
	}
	b.see(stands, now)
	next, write := b.limit.Next(b.owed, now.Sub(b.since), b.full)
	if write {
		if stands, err = b.keeper.Write(ctx, next); err != nil {
			return err
		}
		b.see(stands, now)
	}
	b.owed = false
	return nil
}

// see takes note of the limit that stands. Temporal spreads a limit over its
// hosts in a moment, in which one may still tell the old one.
func (b *brake) see(l throttle.Limit, now time.Time) {
	if !l.Updated.After(b.limit.Updated) {
		return
	}
	fields := []zap.Field{
		zap.Float64("phasesPerSecond", b.rate(l)), zap.Float64("before", b.rate(b.limit)), zap.String("over", b.over), zap.String("reason", l.Reason),
	}
	switch {
	case l.Set && b.rate(l) <= b.rate(b.limit):
		b.log.Warn("provider calls are slowed down", fields...)
	case l.Set || b.limit.Set:
		b.log.Info("provider calls may be faster again", fields...)
	}
	b.limit, b.since = l, now
	b.pace.Slow(callsPerPhase * l.Rate)
}

// rate is what a limit comes to.
func (b *brake) rate(l throttle.Limit) float64 {
	if !l.Set {
		return b.full
	}
	return l.Rate
}

// refused reports that Temporal does not do this for the worker, and will
// not another time.
func refused(err error) bool {
	var denied *serviceerror.PermissionDenied
	var unknown *serviceerror.Unimplemented
	return errors.As(err, &denied) || errors.As(err, &unknown)
}

// alone keeps a limit where Temporal does not: for one worker.
type alone struct{ limit throttle.Limit }

// Read implements keeper.
func (a *alone) Read(context.Context) (throttle.Limit, error) { return a.limit, nil }

// Write implements keeper.
func (a *alone) Write(_ context.Context, l throttle.Limit) (throttle.Limit, error) {
	a.limit = l
	a.limit.Updated = time.Now()
	return a.limit, nil
}
