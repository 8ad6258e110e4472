package clip_test

import (
	"strings"
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

func TestNames(t *testing.T) {
	t.Parallel()
	require.Empty(t, clip.Names(nil))
	given := []string{"b", "a"}
	require.Equal(t, "a, b", clip.Names(given))
	require.Equal(t, []string{"b", "a"}, given, "the caller's order stays")
	many := strings.Split(strings.Repeat("n ", 21), " ")[:21]
	require.Equal(t, strings.Repeat("n, ", 20)+"and 1 more", clip.Names(many))
	require.NotContains(t, clip.Names(many[:20]), "more")
}
