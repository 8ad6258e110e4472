package simulated

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/testenv"
)

func TestNothingIsWrittenAfterAReset(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered = RAID1 })
	bootAs(t, m, hardware.BootRescue, InRescue)
	h := &rescueHost{b: m.boot, root: true}
	h.b.runTool([]string{"mdadm", "--stop", "/dev/md127", "/dev/md126"})
	d, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	_, err = d.WriteAt(make([]byte, 512), 8<<20)
	require.NoError(t, err)

	m.Reset()
	before, err := os.ReadFile(m.DiskPath(1))
	require.NoError(t, err)
	_, err = d.WriteAt([]byte("too late"), 0)
	require.ErrorIs(t, err, errGone)
	_, err = d.Zero(t.Context(), 0, 4096)
	require.ErrorIs(t, err, errGone)
	require.ErrorIs(t, d.Sync(), errGone)
	_, err = d.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, errGone)
	after, err := os.ReadFile(m.DiskPath(1))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, d.Close())
	require.EqualValues(t, 512, m.Boots()[0].Disks[0].BytesWritten)
	require.Zero(t, m.Boots()[0].Disks[1])
}

func TestTheMachineResetsItselfInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered, o.Faults.ResetAfterWrite = RAID1, 8192 })
	bootAs(t, m, hardware.BootRescue, InRescue)
	first := m.boot
	h := &rescueHost{b: first, root: true}
	h.b.runTool([]string{"mdadm", "--stop", "/dev/md127", "/dev/md126"})
	d, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	data := bytes.Repeat([]byte("data"), 1024)
	for _, quiet := range [][]byte{data, make([]byte, 4096), make([]byte, 4096)} {
		_, err = d.WriteAt(quiet, 0)
		require.NoError(t, err)
	}
	_, err = d.WriteAt(data, 4096)
	require.ErrorIs(t, err, errGone)
	<-first.done
	require.Eventually(t, func() bool { return len(m.Boots()) == 2 }, 10*time.Second, time.Millisecond)
}

func TestOneWriterADisk(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered = LVM })
	bootAs(t, m, hardware.BootRescue, InRescue)
	h := &rescueHost{b: m.boot, root: true}

	_, err := h.OpenDisk(t.Context(), "sda", true)
	require.Error(t, err, "the arrays are up")
	require.Equal(t, 1, m.Boots()[0].Disks[0].Refused)

	disks, err := h.Topology(t.Context())
	require.NoError(t, err)
	require.Len(t, disks[0].Holders, 3)
	require.Equal(t, "vg0/root", disks[0].Holders[0].Name, "outermost first")
	exit, _ := h.b.runTool([]string{"mdadm", "--stop", "/dev/md126"})
	require.NotZero(t, exit, "a volume is active on it")
	for _, tool := range [][]string{{"lvm", "lvchange", "-an", "vg0/root"}, {"mdadm", "--stop", "/dev/md126"}, {"mdadm", "--stop", "/dev/md127"}} {
		out, err := h.Run(t.Context(), tool...)
		require.NoError(t, err)
		require.Zero(t, out.Exit, out.Tail)
	}
	first, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	_, err = h.OpenDisk(t.Context(), "sda", true)
	require.Error(t, err, "one writer")
	require.NoError(t, first.Close())
	require.Error(t, first.Close())
	again, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	require.NoError(t, again.Close())

	bootAs(t, m, hardware.BootRescue, InRescue)
	require.Len(t, m.boot.holders(0), 3, "the superblocks are still there, so the arrays come back")
}

func TestDiskFaults(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) {
		o.Delivered = RAID1
		o.Faults = Faults{WriteErrorDisk: 1, WriteErrorAt: 10_000, LyingDiscard: true, RAM: 1 << 20}
	})
	bootAs(t, m, hardware.BootRescue, InRescue)
	h := &rescueHost{b: m.boot, root: true}
	h.b.runTool([]string{"mdadm", "--stop", "/dev/md127", "/dev/md126"})
	d, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	defer d.Close()
	_, err = d.WriteAt(make([]byte, 4096), 8192)
	require.Error(t, err)
	_, err = d.WriteAt([]byte{1}, 0)
	require.NoError(t, err)
	_, err = d.Zero(t.Context(), 0, 4096)
	require.NoError(t, err)
	got := make([]byte, 1)
	_, err = d.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, []byte{1}, got, "the discard lied")
	_, err = d.ReadDirectAt(make([]byte, 100), 0)
	require.Error(t, err, "not aligned")

	free, err := h.RAMFree()
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, free)
	require.NoError(t, os.WriteFile(filepath.Join(h.RAMDir(), "file"), make([]byte, 1<<18), 0o600))
	free, err = h.RAMFree()
	require.NoError(t, err)
	require.Less(t, free, uint64(1<<20-1<<18+1))
}

// A tool that writes to a disk in use kills the kernel sooner or later.
func TestWritingToADiskInUsePanics(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered, o.Faults.BusyWrites = RAID1, true })
	bootAs(t, m, hardware.BootRescue, InRescue)
	d, err := (&rescueHost{b: m.boot, root: true}).OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	for err == nil {
		_, err = d.WriteAt([]byte("x"), 40<<20)
	}
	require.ErrorIs(t, err, errGone)
	require.NoError(t, m.WaitState(testenv.Soon(t), Hung))
	bootAs(t, m, hardware.BootRescue, InRescue)
}
