package track

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

// TestNewestRunOnAServer: the run that counts most against what an earlier one
// left, of runs that are seen the newest first.
func TestNewestRunOnAServer(t *testing.T) {
	t.Parallel()
	r := func(lot string, state run.State, phase run.Phase) nodeRun {
		return nodeRun{workflowID: "w", lot: lot, node: lot + "-1", state: state, phase: phase}
	}
	alone := r("alone", run.Ready, run.Preflight)
	for name, c := range map[string]struct {
		runs []nodeRun
		want string // lot
	}{
		"none":                             {nil, ""},
		"left alone":                       {[]nodeRun{alone}, ""},
		"installed anew":                   {[]nodeRun{r("b", run.Ready, run.WaitReady)}, "b"},
		"installed, then left alone":       {[]nodeRun{alone, r("b", run.Ready, run.WaitReady)}, "b"},
		"at work":                          {[]nodeRun{r("b", run.Running, run.Preflight)}, "b"},
		"aborted in preflight":             {[]nodeRun{r("b", run.Aborted, run.Preflight)}, "b"},
		"installed, then one that did not": {[]nodeRun{r("c", run.Aborted, run.Preflight), r("b", run.Ready, run.WaitReady)}, "b"},
		"installed twice":                  {[]nodeRun{r("c", run.Stuck, run.Write), r("b", run.Ready, run.WaitReady)}, "c"},
		"by the lot itself":                {[]nodeRun{r("own", run.Ready, run.WaitReady)}, ""},
	} {
		later := newest{}
		for _, r := range c.runs {
			later.see(r)
		}
		got := later.of("w", "own")
		if c.want == "" {
			require.Nil(t, got, name)
			continue
		}
		require.NotNil(t, got, name)
		require.Equal(t, c.want, got.Lot, name)
		require.Equal(t, c.want+"-1", got.Node, name)
		require.Nil(t, later.of("another", "own"), name)
	}
	require.True(t, NewerRun{State: run.Ready, Phase: run.WaitReady}.Reinstalled())
	require.False(t, NewerRun{State: run.Aborted, Phase: run.WaitReady}.Reinstalled())
}
