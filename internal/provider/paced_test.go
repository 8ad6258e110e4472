package provider

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
)

func TestPace(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var p Pace
	take := func(at time.Time) time.Duration {
		wait, ok := p.take(at, patience)
		require.True(t, ok)
		return wait
	}
	for range 3 {
		require.Zero(t, take(now), "as they come")
	}
	p.Slow(2)
	require.Zero(t, take(now))
	require.Equal(t, time.Second/2, take(now))
	require.Equal(t, time.Second, take(now))
	require.Zero(t, take(now.Add(10*time.Second)), "turns are not saved up")
	require.Equal(t, time.Second/2, take(now.Add(10*time.Second)))

	p.Slow(0)
	p.hold(now, time.Minute)
	p.hold(now, time.Second)
	require.Equal(t, time.Minute, take(now), "the longest hold counts")
	p.hold(now, 2*time.Minute)
	wait, ok := p.take(now, patience)
	require.False(t, ok)
	require.Equal(t, 2*time.Minute, wait)
	require.Zero(t, take(now.Add(2*time.Minute)), "nothing was reserved")
}

// busy is a provider that answers 429.
type busy struct {
	Provider
	after time.Duration
	calls int
}

func (b *busy) Describe(context.Context, string, string) (Server, error) {
	b.calls++
	return Server{}, fault.Retry("not now: %w", &Throttled{After: b.after})
}

func (b *busy) List(context.Context, string) (Listing, error) {
	b.calls++
	return Listing{}, fault.Retry("not now: %w", &Throttled{After: b.after})
}

func (b *busy) Reboot(context.Context, string, string, BootType, []string) error {
	b.calls++
	return nil
}

func TestPaced(t *testing.T) {
	t.Parallel()
	b, pressed := &busy{after: time.Hour}, 0
	p := Paced(b, &Pace{}, func() { pressed++ })
	_, err := p.Describe(t.Context(), "", "")
	require.Equal(t, time.Hour, RetryAfter(err))
	require.Equal(t, 1, pressed)

	_, err = p.Describe(t.Context(), "", "")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
	require.ErrorContains(t, err, "429")
	require.InDelta(t, longestHold.Seconds(), RetryAfter(err).Seconds(), 60, "it says when to come back")
	require.Equal(t, 1, b.calls, "the provider was not asked")
	require.Equal(t, 1, pressed, "it has not answered either")

	require.NoError(t, p.Reboot(t.Context(), "", "", BootRescue, nil), "what was looked at before goes out at once")
	require.Equal(t, 2, b.calls)
}

// TestAWaitEndsWithItsContext: a phase that is cancelled does not wait on.
func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := Paced(&busy{after: 30 * time.Second}, &Pace{}, func() {})
	_, err := p.Describe(t.Context(), "", "")
	require.Error(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Describe(ctx, "", "")
	require.ErrorIs(t, err, context.Canceled)
}

// TestListIsPaced: the list of a zone keeps to the pace like all other looks.
func TestListIsPaced(t *testing.T) {
	t.Parallel()
	b, pressed := &busy{after: time.Hour}, 0
	p := Paced(b, &Pace{}, func() { pressed++ })
	for range 2 {
		_, err := p.List(t.Context(), "")
		require.Equal(t, fault.Transient, fault.ClassOf(err))
	}
	require.Equal(t, 1, pressed)
	require.Equal(t, 1, b.calls, "the second one waits for its turn")
}
