package worker

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/throttle"
)

// kept is what Temporal keeps, for several brakes. Its clock is years behind.
type kept struct {
	limit  throttle.Limit
	stale  *throttle.Limit // is read instead
	err    error
	writes int
}

func (k *kept) Read(context.Context) (throttle.Limit, error) {
	if k.stale != nil {
		return *k.stale, k.err
	}
	return k.limit, k.err
}

func (k *kept) Write(_ context.Context, l throttle.Limit) (throttle.Limit, error) {
	if k.err != nil {
		return throttle.Limit{}, k.err
	}
	k.writes++
	l.Updated = time.Unix(int64(k.writes), 0)
	k.limit = l
	return l, nil
}

// brakes are so many workers' brakes on one queue.
func brakes(k *kept, n int) (all []*brake, logs *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	for range n {
		all = append(all, &brake{keeper: k, pace: &provider.Pace{}, full: 8, log: zap.New(core), over: "all workers", asked: make(chan struct{}, 1)})
	}
	return all, logs
}

// TestTwoWorkersBrakeAtOnce: one burst of answers is one step, whoever gets
// them, and both workers know.
func TestTwoWorkersBrakeAtOnce(t *testing.T) {
	t.Parallel()
	k := &kept{}
	both, logs := brakes(k, 2)
	now := time.Now()
	for _, b := range both {
		b.look(t.Context(), now)
		b.ask(t.Context(), now)
	}
	require.InDelta(t, 4, k.limit.Rate, 1e-9)
	require.Equal(t, 2, logs.FilterMessage("provider calls are slowed down").Len())
	require.Equal(t, both[0].limit, both[1].limit)
}

// TestTheWorkerThatBrakedDies: another one eases the limit, although it never
// got a 429 itself, and one that is started later does.
func TestTheWorkerThatBrakedDies(t *testing.T) {
	t.Parallel()
	k := &kept{}
	both, logs := brakes(k, 2)
	now := time.Now()
	both[0].ask(t.Context(), now)
	require.True(t, k.limit.Set)
	for range 3 {
		both[1].look(t.Context(), now)
		now = now.Add(time.Minute)
	}
	require.False(t, k.limit.Set)
	require.Equal(t, 1, logs.FilterMessage("provider calls may be faster again").Len())
}

// TestAtTheFloorNobodyEases: one worker goes on being asked to slow down, so
// that the other one leaves the limit alone.
func TestAtTheFloorNobodyEases(t *testing.T) {
	t.Parallel()
	k := &kept{}
	both, _ := brakes(k, 2)
	now := time.Now()
	for range 20 {
		both[0].ask(t.Context(), now)
		both[1].look(t.Context(), now)
		now = now.Add(15 * time.Second)
	}
	require.InDelta(t, 0.5, k.limit.Rate, 1e-9)
}

// TestTemporalAway: the wish to brake is carried out once Temporal answers,
// and the log says once that it did not.
func TestTemporalAway(t *testing.T) {
	t.Parallel()
	k := &kept{err: serviceerror.NewUnavailable("away")}
	one, logs := brakes(k, 1)
	for range 5 {
		one[0].ask(t.Context(), time.Now())
	}
	require.Equal(t, 1, logs.Len())
	k.err = nil
	one[0].look(t.Context(), time.Now())
	require.InDelta(t, 4, k.limit.Rate, 1e-9)
}

// TestTemporalKeepsNoLimits: the worker says so once and slows down alone.
func TestTemporalKeepsNoLimits(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{serviceerror.NewUnimplemented("what?"), serviceerror.NewPermissionDenied("no", "")} {
		k := &kept{err: refusal}
		one, logs := brakes(k, 1)
		now := time.Now()
		one[0].ask(t.Context(), now)
		one[0].look(t.Context(), now)
		require.InDelta(t, 4, one[0].limit.Rate, 1e-9)
		require.Equal(t, 2, logs.Len(), "the refusal and the limit, each once")
		one[0].look(t.Context(), now.Add(time.Hour))
		require.False(t, one[0].limit.Set)
		require.Zero(t, k.writes)
	}
	require.False(t, refused(errors.New("other")))
}

// TestAnOldAnswerIsNoNews: a host of Temporal that has not heard of the
// limit yet does not undo it.
func TestAnOldAnswerIsNoNews(t *testing.T) {
	t.Parallel()
	k := &kept{}
	one, logs := brakes(k, 1)
	now := time.Now()
	one[0].ask(t.Context(), now)
	k.stale = &throttle.Limit{}
	one[0].look(t.Context(), now)
	require.True(t, one[0].limit.Set)
	require.Equal(t, 1, logs.Len())
}

// TestSettingsThatDoNothing: a worker that could never work says so.
func TestSettingsThatDoNothing(t *testing.T) {
	t.Parallel()
	good := Config{MaxNodes: 1, Rate: 0.1}
	require.NoError(t, good.Check())
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		require.Error(t, Config{MaxNodes: 1, Rate: rate}.Check(), rate)
	}
	for _, nodes := range []int{0, -1} {
		require.Error(t, Config{MaxNodes: nodes, Rate: 1}.Check())
	}
}
