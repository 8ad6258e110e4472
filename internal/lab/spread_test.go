package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMachinesDiffer by the seed, each by itself and within the spread.
func TestMachinesDiffer(t *testing.T) {
	t.Parallel()
	f := &Fleet{opts: Options{Speed: 60, Spread: 0.2, Seed: 1}}
	seen := map[float64]bool{}
	for n := 1; n <= 100; n++ {
		slowness := f.Slowness(n)
		require.InDelta(t, 1, slowness, 0.2)
		require.Equal(t, slowness, f.Slowness(n))
		require.InEpsilon(t, RealTime().Seconds()/60*slowness, f.OwnTime(n).Seconds(), 1e-6)
		seen[slowness] = true
	}
	require.Len(t, seen, 100)
	require.Equal(t, RealTime(), (&Fleet{opts: Options{Speed: 1}}).OwnTime(1))
	_, err := Options{Dir: "x", Spread: 1}.withDefaults().check()
	require.ErrorContains(t, err, "spread")
}
