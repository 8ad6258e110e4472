package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurns: so many at a time, and nobody waits for ever for one that hangs.
func TestTurns(t *testing.T) {
	t.Parallel()
	all := make(turns, 2)
	first := all.take(t.Context(), time.Hour)
	hangs := all.take(t.Context(), time.Hour)
	require.Len(t, all, 2)

	third := make(chan func())
	go func() { third <- all.take(context.WithoutCancel(t.Context()), time.Hour) }()
	first()
	release := <-third
	require.Len(t, all, 2, "the third has the turn of the first")

	all.take(t.Context(), time.Millisecond)() // goes on without one
	ended, end := context.WithCancel(t.Context())
	end()
	all.take(ended, time.Hour)()
	require.Len(t, all, 2, "who had no turn gives none back")
	release()
	hangs()
	require.Empty(t, all)
}
