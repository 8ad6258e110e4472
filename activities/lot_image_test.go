package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// TestNodeWithAnotherImageThanItsLotIsStuck, and both digests are named. A
// digest in the lot file stands above what the first node has staged.
func TestNodeWithAnotherImageThanItsLotIsStuck(t *testing.T) {
	t.Parallel()
	asked := 0
	a := New(Config{LotImage: func(_ context.Context, lot, lotRun string, claim run.LotImage) (run.LotImage, error) {
		asked++
		require.Equal(t, "rack-1", lot)
		require.Equal(t, "the-first", lotRun)
		require.Equal(t, "n2", claim.Node)
		require.NotEmpty(t, claim.URL)
		return run.LotImage{RawSHA256: "aa", Node: "n1", URL: "http://images/talos.raw"}, nil
	}})
	in := run.PhaseInput{LotRun: "the-first", Node: run.Node{Lot: "rack-1", Name: "n2", Image: run.Image{URL: "http://images/talos.raw"}}}
	require.NoError(t, a.checkLotImage(t.Context(), in, "aa"))
	err := a.checkLotImage(t.Context(), in, "bb")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.ErrorContains(t, err, "sha256 bb")
	require.ErrorContains(t, err, "(n1) one with aa")
	require.ErrorContains(t, err, "from the same address http://images/talos.raw; find out which image is right")
	in.Node.Image.URL = "http://images/small.raw"
	err = a.checkLotImage(t.Context(), in, "bb")
	require.ErrorContains(t, err, "from other addresses: http://images/small.raw and http://images/talos.raw; name the first node's image in the lot file, or this one with its digest")
	require.Equal(t, 3, asked)
	for _, image := range []run.Image{{SHA256: "cc"}, {RawSHA256: "bb"}} {
		in.Node.Image = image
		require.NoError(t, a.checkLotImage(t.Context(), in, "bb"))
	}
	require.Equal(t, 3, asked)
}

func TestLotThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	a := New(Config{LotImage: func(context.Context, string, string, run.LotImage) (run.LotImage, error) {
		return run.LotImage{}, errors.New("unavailable")
	}})
	require.Equal(t, fault.Transient, fault.ClassOf(a.checkLotImage(t.Context(), run.PhaseInput{}, "aa")))
}
