package show

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

// TestStopsContradictNoRemedy: below a remedy that names a retry with its flags
// there is no plain one.
func TestStopsContradictNoRemedy(t *testing.T) {
	t.Parallel()
	l := fleet()
	l.Nodes[3].Status.Problem.Remedy = run.Remedy("`starter retry LOT NODE --from stage`", run.Node{Lot: "rack-1", Name: "d"})
	require.Contains(t, Stops(l), `
  what to do: `+"`starter retry rack-1 d --from stage`"+`
  erased: nothing.
  or: `+"`starter abort rack-1 d`"+`
`)
}
