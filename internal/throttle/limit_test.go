package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNext(t *testing.T) {
	t.Parallel()
	const full = 8
	braked := func(rate float64) Limit { return Limit{Set: true, Rate: rate, Reason: brakeReason} }
	easing := func(rate float64) Limit { return Limit{Set: true, Rate: rate, Reason: easeReason} }
	persons := func(rate float64) Limit { return Limit{Set: true, Rate: rate, Reason: "quiet, please"} }
	for name, c := range map[string]struct {
		limit     Limit
		throttled bool
		age       time.Duration
		want      Limit
		write     bool
	}{
		"all is well":                  {Limit{}, false, time.Hour, Limit{}, false},
		"the first 429":                {Limit{}, true, time.Hour, braked(4), true},
		"a 429 soon after a full ease": {Limit{Reason: easeReason}, true, time.Second, braked(4), true},
		"another of the same burst":    {braked(4), true, time.Second, braked(4), false},
		"one more later":               {braked(4), true, burst, braked(2), true},
		"one soon after easing":        {easing(4), true, time.Second, braked(2), true},
		"no end of them":               {braked(leastRate), true, time.Hour, braked(leastRate), true},
		"content, not for long":        {braked(1), false, easeAfter - 1, braked(1), false},
		"content for a while":          {braked(1), false, easeAfter, easing(2), true},
		"content for longer":           {easing(2), false, easeAfter, easing(4), true},
		"content for good":             {easing(4), false, easeAfter, Limit{Reason: easeReason}, true},
		"a person's limit":             {persons(3), false, time.Hour, persons(3), false},
		"a person's limit and a 429":   {persons(3), true, time.Hour, persons(3), false},
		"a person stopped the queue":   {persons(0), true, time.Hour, persons(0), false},
		"a worker with a higher rate":  {braked(20), false, easeAfter, Limit{Reason: easeReason}, true},
		"its limit and a 429":          {braked(20), true, burst, braked(4), true},
	} {
		next, write := c.limit.Next(c.throttled, c.age, full)
		require.Equal(t, c.want, next, name)
		require.Equal(t, c.write, write, name)
	}
}

// TestTheFloorIsNotAboveTheRate: who asks for less than the floor gets less.
func TestTheFloorIsNotAboveTheRate(t *testing.T) {
	t.Parallel()
	next, write := Limit{}.Next(true, 0, 0.2)
	require.True(t, write)
	require.InDelta(t, 0.2, next.Rate, 1e-9)
}

// TestFromFullToFloorAndBack: 429s without end lead to the floor, a content
// provider leads back to no limit, each in a bounded number of steps.
func TestFromFullToFloorAndBack(t *testing.T) {
	t.Parallel()
	l, steps := Limit{}, 0
	for ; l.Rate != leastRate; steps++ {
		l, _ = l.Next(true, burst, 50)
	}
	require.Equal(t, 7, steps)
	for steps = 0; l.Set; steps++ {
		l, _ = l.Next(false, easeAfter, 50)
	}
	require.Equal(t, 7, steps)
}
