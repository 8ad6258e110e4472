package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurns: so many at a time, and nobody waits for ever.
func TestTurns(t *testing.T) {
	t.Parallel()
	all := make(turns, 2)
	first := all.take(t.Context(), time.Hour, time.Hour)
	second := all.take(t.Context(), time.Hour, time.Hour)
	require.Len(t, all, 2)

	third := make(chan func())
	go func() { third <- all.take(context.WithoutCancel(t.Context()), time.Hour, time.Hour) }()
	first()
	release := <-third
	require.Len(t, all, 2, "the third has the turn of the first")

	all.take(t.Context(), time.Millisecond, time.Hour)() // goes on without one
	ended, end := context.WithCancel(t.Context())
	end()
	all.take(ended, time.Hour, time.Hour)()
	require.Len(t, all, 2, "who had no turn gives none back")
	release()
	second()
	require.Empty(t, all)
}

// TestATurnThatHangs ends, and is not given back twice.
func TestATurnThatHangs(t *testing.T) {
	t.Parallel()
	all := make(turns, 1)
	hangs := all.take(t.Context(), time.Hour, time.Millisecond)
	next := all.take(t.Context(), time.Hour, time.Hour)
	hangs()
	require.Len(t, all, 1, "the next one's turn goes on")
	next()
	require.Empty(t, all)
}
