package clip_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/clip"
)

func TestCutsAtARune(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", clip.End("short", 200))
	require.Equal(t, "short", clip.Start("short", 5))
	long := "ääääääääää"
	require.Equal(t, "äää…", clip.End(long, 10))
	require.Equal(t, "…äää", clip.Start(long, 10))
}
