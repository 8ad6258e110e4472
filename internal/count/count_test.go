package count_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/count"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 2: "2 nodes"} {
		require.Equal(t, want, count.Of(n, "node"))
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 nodes wait", 1: "1 node waits", 2: "2 nodes wait"} {
		require.Equal(t, want, count.Do(n, "node", "wait"))
	}
}
