package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

// TestDetailsContradictNoRemedy: a plain retry stands below a remedy only where
// that names none of its own.
func TestDetailsContradictNoRemedy(t *testing.T) {
	t.Parallel()
	s := run.Status{State: run.Stuck, Node: run.Node{Lot: "rack-1", Name: "w-1"}, Problem: &run.Problem{Remedy: "pull the disk"}}
	require.Contains(t, details(s), "**What to do:** pull the disk\n\n")
	require.Contains(t, details(s), "`starter retry rack-1 w-1` (with `--batch LOT.YAML` after a correction in the lot file) or `starter abort rack-1 w-1`\n\n")

	s.Problem.Remedy = run.Remedy("`starter retry LOT NODE --from stage`", s.Node)
	require.Contains(t, details(s), "**What to do:** `starter retry rack-1 w-1 --from stage`\n\n")
	require.NotContains(t, details(s), "`starter retry rack-1 w-1`")
	require.Contains(t, details(s), "Or `starter abort rack-1 w-1`\n\n")
}
