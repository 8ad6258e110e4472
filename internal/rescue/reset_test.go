package rescue_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/rescue"
)

// TestAMachineGoesOnceItsAnswerIsHere: the reset waits for the answer's way to
// the worker, and for nothing else.
func TestAMachineGoesOnceItsAnswerIsHere(t *testing.T) {
	t.Parallel()
	var told, resets atomic.Int32
	b := newBench(t, func(o *simulated.Options) {
		o.Hold = func(point string) {
			if point != "reset" {
				return
			}
			resets.Add(1)
			said, err := filepath.Glob(filepath.Join(o.Dir, "ram", "*", "*", "reset-answered"))
			if err == nil && len(said) == 1 {
				told.Add(1)
			}
		}
	})
	b.bootRescue(t)
	s, inventory := b.ready(t)
	require.NoError(t, s.Reset(t.Context(), inventory.BootID))
	require.Eventually(t, func() bool { return len(b.machine.Boots()) == 2 }, 30*time.Second, time.Millisecond)
	require.EqualValues(t, 1, resets.Load())
	require.EqualValues(t, 1, told.Load(), "it did not wait in vain for a sign that the answer has come")
}

// TestALostAnswerStopsNoReset: the machine goes all the same, and nothing is
// known of it.
func TestALostAnswerStopsNoReset(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(o *simulated.Options) {
		o.Hold = func(point string) {
			if point == "reset asked" {
				b.machine.SetNetwork(false)
			}
		}
	})
	b.dialer.HurryKeepalive(50*time.Millisecond, 4*time.Second)
	b.bootRescue(t)
	s, inventory := b.ready(t)
	require.ErrorIs(t, s.Reset(t.Context(), inventory.BootID), rescue.ErrTransport)
	require.Eventually(t, func() bool { return len(b.machine.Boots()) == 2 }, 30*time.Second, time.Millisecond)
}
