package activities

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/simulated"
)

// TestMachineThatDoesNotReset: SysRq is tried again, and then it is a person's.
func TestMachineThatDoesNotReset(t *testing.T) {
	t.Parallel()
	var resets atomic.Int32
	over := make(chan struct{})
	b := newBench(t, func(o *simulated.Options) {
		o.Hold = func(point string) {
			switch point {
			case "reset asked":
				resets.Add(1)
			case "reset":
				<-over
			}
		}
	})
	t.Cleanup(func() { close(over) })
	b.mayAnswer = 0
	_, err := attempt(t, b.Activities, b.sysrqReset, b.in, time.Minute)
	require.EqualError(t, err, "boot "+short(b.in.Facts.Rescue.BootID)+" of server em-1 still answers after 3 resets through SysRq; "+
		"`starter retry LOT NODE --from boot-normal` reboots through the provider: the disk is written and synced")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.EqualValues(t, maxResets, resets.Load())
	require.Len(t, b.machine.Boots(), 1)
}
