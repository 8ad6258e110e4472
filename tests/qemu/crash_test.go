package qemu

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/tests/rig"
)

// crash is a run whose workers are processes that can be killed and frozen.
type crash struct {
	*stack
	r      *rig.Rig
	in     run.NodeInput
	worker *rig.Worker
}

func newCrash(t *testing.T, script rig.Script) *crash {
	t.Helper()
	n, base := common.base()
	c := &crash{stack: &stack{t: t}}
	t.Cleanup(func() { // after the machine's end
		if c.machine != nil {
			t.Log(effort(c.machine))
		}
	})
	c.r = rig.New(t, rig.Binaries{Dir: common.agents}, common.server.Address(), script, lab.Options{
		Kit: common.kit, Servers: 1, Base: base, Lot: fmt.Sprintf("crash%d", n), Speed: 20,
		Image: images.Spec{Size: imageSize, Data: imageData, Seed: 1},
	})
	c.r.Patience = patience
	c.fleet, c.machine = c.r.Fleet, c.r.Fleet.Servers()[0].Guest
	c.worker = c.r.Worker()
	c.in = c.r.Inputs(nil)[0]
	return c
}

// A worker that is killed while the image is staged, and one that is killed
// while it is written.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	c := newCrash(t, rig.NewHolds())
	c.strike(func() {
		c.worker.Kill()
		c.worker = c.r.Worker()
	}, func() {})
}

// A worker that is frozen while the image is staged, until another one has
// taken over, and is thawed in the middle of that; the same during write.
func TestWorkerFrozen(t *testing.T) {
	t.Parallel()
	c := newCrash(t, rig.NewHolds())
	workers := []*rig.Worker{c.worker} // any of them may have the phase
	c.strike(func() {
		for _, w := range workers {
			w.Freeze()
		}
		workers = append(workers, c.r.Worker())
	}, func() {
		for _, w := range workers {
			w.Thaw()
		}
	})
	for _, w := range workers {
		require.True(t, w.Alive(), "the late ones live, and have done nothing")
	}
}

// strike runs the server to Ready. In the middle of stage and in the middle of
// write it strikes, waits until another worker has the phase while the work on
// the machine goes on, and then heals.
func (c *crash) strike(strike, heal func()) {
	c.t.Helper()
	c.fleet.Images().SetFaults(images.Faults{BytesPerSecond: 200e3}) // slow enough for another worker to come
	c.r.Start(c.in)
	c.r.Eventually("the image is being staged", func() bool {
		return c.now(run.Stage) && c.downloads() > 0
	})
	c.takeOver(run.Stage, strike, heal)
	require.NoError(c.t, c.machine.SlowWrites(1, 4, 0))
	c.fleet.Images().SetFaults(images.Faults{})

	c.r.Eventually("the image is being written", func() bool { return c.now(run.Write) && c.begun() })
	require.NoError(c.t, c.machine.SlowWrites(1, 0, 250e3)) // the same for write
	c.takeOver(run.Write, strike, heal)
	require.Empty(c.t, c.table(), "the write goes on: the disk shows no partition yet")
	require.NoError(c.t, c.machine.SlowWrites(1, 0, 0))
	c.prove()
}

// takeOver strikes in a phase and waits until another worker was given it.
func (c *crash) takeOver(phase run.Phase, strike, heal func()) {
	c.t.Helper()
	held := c.r.Proxy.Now(c.in.Node.ID())
	require.Equal(c.t, string(phase), held.Activity)
	strike()
	c.r.Eventually("another worker has taken over "+string(phase), func() bool {
		return c.r.Proxy.Now(c.in.Node.ID()) != held
	})
	heal()
	now := c.r.Proxy.Now(c.in.Node.ID())
	require.Equal(c.t, string(phase), now.Activity, "it came while the phase went on")
	require.Equal(c.t, held.Attempt+1, now.Attempt)
	c.t.Logf("struck in %s, attempt %d took over", phase, now.Attempt)
}

func (c *crash) now(phase run.Phase) bool {
	return c.r.Proxy.Now(c.in.Node.ID()).Activity == string(phase)
}

// downloads counts the requests for the image that the machine has made.
func (c *crash) downloads() (n int) {
	for _, r := range c.fleet.Images().Requests() {
		if r.Agent == "ironlot-agent" {
			n++
		}
	}
	return n
}

// begun reports whether the start of the image's first partition is on the
// disk, as the host sees it.
func (c *crash) begun() bool {
	c.t.Helper()
	file, err := c.fleet.Images().File(images.Raw)
	require.NoError(c.t, err)
	want, got := make([]byte, layout.SectorSize), make([]byte, layout.SectorSize)
	for path, p := range map[string][]byte{file.Path: want, c.machine.DiskPath(1): got} {
		f, err := os.Open(path)
		require.NoError(c.t, err)
		_, err = f.ReadAt(p, layout.MiB)
		require.NoError(c.t, err)
		require.NoError(c.t, f.Close())
	}
	return string(want) == string(got)
}

// table lists the partitions that the system disk shows.
func (c *crash) table() (parts []layout.Part) {
	c.t.Helper()
	require.NoError(c.t, c.machine.EditDisk(1, func(f layout.File, size int64) error {
		parts = layout.Read(f, size)
		return nil
	}))
	return parts
}

// prove waits for Ready and counts: one reboot for each one needed, one
// download, and no more written than one pass says that it wrote.
func (c *crash) prove() {
	c.t.Helper()
	status := c.r.Settled(c.in.Node.ID())
	require.Equal(c.t, run.Ready, status.State, "%+v\nworkers' log:\n%s", status.Problem, c.r.LogTail())
	c.t.Logf("Ready: %s", times(status))
	require.Zero(c.t, status.Rewinds, "%+v", status.Timeline)
	require.Equal(c.t, map[string]int{"rescue": 1, "normal": 1}, c.fleet.Servers()[0].Counters().Reboots)
	require.Equal(c.t, 1, c.downloads())
	boots := c.machine.Boots()
	require.Equal(c.t, "guest-reset", boots[0].Ended)
	require.Len(c.t, boots[0].Disks, 2, "QEMU has counted")
	count, once := boots[0].Disks[0], status.Facts.Written.BytesWritten
	c.t.Logf("QEMU counted on the system disk: %+v", count)
	require.GreaterOrEqual(c.t, count.Written, once)
	require.Less(c.t, count.Written, once+status.Facts.Written.BytesZeroed+once/2, "one pass, by one writer")
	require.True(c.t, c.equalsImage(1))
}
