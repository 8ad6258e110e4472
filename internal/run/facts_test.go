package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

// TestFactsTravelOnce: what a phase adds or changes is told, and nothing else.
func TestFactsTravelOnce(t *testing.T) {
	t.Parallel()
	before := run.Facts{
		Address: "192.0.2.1", Touched: true, SeenBoots: []string{"a"}, Rescue: &run.RescueBoot{BootID: "b"},
		System: &run.Disk{Serial: "S1"}, Secondary: []run.Disk{{Serial: "S2"}},
	}
	after := before
	after.Rescue = &run.RescueBoot{BootID: "b", User: "rescue"}
	after.System = &run.Disk{Serial: "S1"} // equal, and another value in memory
	after.Staged = &run.Staged{RawSHA256: "aa"}
	told := after.Since(before)
	require.Equal(t, run.Facts{Rescue: after.Rescue, Staged: after.Staged}, told)
	require.Equal(t, after, before.With(told))
	require.Equal(t, after, before.With(after), "the whole of it works as well")
	require.Equal(t, before, before.With(before.Since(before)))
}
