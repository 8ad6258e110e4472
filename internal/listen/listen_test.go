package listen_test

import (
	"context"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/listen"
	"github.com/ironlot/ironlot/internal/testenv"
)

// TestPortsOfAProcessThatForks: a port is free as soon as it is closed, though
// children have copies of it. Plain listeners fail here within a second.
func TestPortsOfAProcessThatForks(t *testing.T) {
	t.Parallel()
	forks(t)
	address := testenv.Nobody()
	for range 1000 {
		require.NoError(t, listen.Free(t.Context(), address))
		l, err := listen.TCP(t.Context(), address)
		require.NoError(t, err)
		require.Error(t, listen.Free(t.Context(), address))
		require.NoError(t, l.Close())
	}
}

// TestPortInUse: where somebody listens nobody else can.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	held, err := listen.TCP(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	err = listen.Free(t.Context(), held.Addr().String())
	require.ErrorContains(t, err, "address already in use")
	require.NoError(t, held.Close())
}

// forks starts processes, one after the other in four rows, until the test ends.
func forks(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var rows sync.WaitGroup
	for range 4 {
		rows.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "/bin/true").Run()
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		rows.Wait()
	})
}
