package pause

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFor(t *testing.T) {
	t.Parallel()
	start := time.Now()
	require.NoError(t, For(t.Context(), 20*time.Millisecond))
	require.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
	require.NoError(t, For(t.Context(), -time.Hour))

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	require.ErrorIs(t, For(ctx, time.Hour), context.Canceled)
	require.ErrorIs(t, For(ctx, 0), context.Canceled, "time that was up already")
}
