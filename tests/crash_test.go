package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/run"
)

// oneWriter asserts that nobody even tried to write beside another writer,
// and that the system disk got the image's bytes once, over all boots.
func oneWriter(t *testing.T, m *simulated.Machine, w *run.Written) {
	t.Helper()
	var written int64
	for _, b := range m.Boots() {
		for slot, d := range b.Disks {
			require.Zero(t, d.Refused, "two writers on boot %s", b.ID)
			if slot == 0 { // the smallest one is the lab's first
				written += d.BytesWritten
			}
		}
	}
	// Disk-prep clears superblocks and Talos makes its partitions besides.
	require.Less(t, written, 2*w.BytesWritten, "the image was written more than once")
}

// TestRunGoesOnWithAnotherWorker stops the worker in each phase; the next
// one goes on where the run was.
func TestRunGoesOnWithAnotherWorker(t *testing.T) {
	t.Parallel()
	for _, phase := range []run.Phase{run.RebootRescue, run.WaitSSH, run.DiskPrep, run.Stage, run.Write, run.BootNormal, run.WaitReady} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			s := newStack(t, lab.Options{Servers: 1, Speed: 60})
			stop := s.startWorker()
			r := s.startNode(s.inputs(nil)[0])
			s.eventually("the run has reached "+string(phase), 2*time.Minute, func() bool {
				st := s.status(r.GetID())
				return st.Phase == phase || phase.Before(st.Phase)
			})
			stop()
			s.startWorker()
			status := s.result(r)
			require.Equal(t, run.Ready, status.State)
			require.Zero(t, status.Rewinds)
			server := s.fleet.Servers()[0]
			require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, server.Counters().Reboots)
			oneWriter(t, server.Machine, status.Facts.Written)
		})
	}
}

// TestMachineResetMidWriteRewinds: the machine resets itself while it is
// written. The run notices that its boot is gone and goes back to a new one.
func TestMachineResetMidWriteRewinds(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1, Faults: faults(t, "reset-mid-write")})
	s.startWorker()
	status := s.result(s.startNode(s.inputs(nil)[0]))
	require.Equal(t, run.Ready, status.State)
	require.Positive(t, status.Rewinds)
	require.NotEmpty(t, status.Facts.SeenBoots)
	lost := 0
	for _, r := range status.Timeline {
		if r.Class == string(fault.RescueLost) {
			lost++
		}
	}
	require.Equal(t, status.Rewinds, lost, "the history shows why it went back")
}
