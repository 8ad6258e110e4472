package qemu

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/tests/rig"
)

// The machine resets by itself in the middle of each phase that works on it.
func TestResetInEachPhase(t *testing.T) {
	t.Parallel()
	phases := []run.Phase{run.WaitSSH, run.DiskPrep, run.Stage, run.Write, run.BootNormal}
	g := newGates(phases)
	c := newCrash(t, g)
	c.fleet.Images().SetFaults(images.Faults{BytesPerSecond: 200e3})
	c.r.Start(c.in)
	for _, phase := range phases {
		c.r.Eventually("the run is in "+string(phase), func() bool { return c.now(phase) && c.machine.State() == qemu.On })
		switch phase {
		case run.Stage:
			c.r.Eventually("the image is being staged", func() bool { return c.downloads() > 0 })
			c.fleet.Images().SetFaults(images.Faults{})
		case run.Write:
			require.NoError(t, c.machine.SlowWrites(1, 4, 0))
			c.r.Eventually("the image is being written", c.begun)
		}
		require.NoError(t, c.machine.Reset())
		t.Logf("reset in %s", phase)
		g.open(phase)
	}
	status := c.r.Settled(c.in.Node.ID())
	require.Equal(t, run.Ready, status.State, "%+v\nworkers' log:\n%s", status.Problem, c.r.LogTail())
	t.Logf("Ready: %s", times(status))
	require.NotZero(t, status.Rewinds)
	require.True(t, c.equalsImage(1))
}

// gates hold the end of each phase back until its gate is opened: no phase is
// over before the test has done something to it, however slow the test is.
type gates struct {
	mu     sync.Mutex
	closed map[string]chan struct{} // by phase
}

func newGates(phases []run.Phase) *gates {
	g := &gates{closed: map[string]chan struct{}{}}
	for _, p := range phases {
		g.closed[string(p)] = make(chan struct{})
	}
	return g
}

// Deliver gives every task out.
func (g *gates) Deliver(rig.Task) bool { return true }

// Intent holds nothing.
func (g *gates) Intent(context.Context, rig.Task) {}

// Answer holds an attempt's end back.
func (g *gates) Answer(ctx context.Context, task rig.Task) {
	g.mu.Lock()
	gate := g.closed[task.Activity]
	g.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-ctx.Done():
	}
}

func (g *gates) open(phase run.Phase) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gate := g.closed[string(phase)]; gate != nil {
		close(gate)
		delete(g.closed, string(phase))
	}
}
