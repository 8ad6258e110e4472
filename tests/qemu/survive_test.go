package qemu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/run"
)

// Downloads that are not the image: each is refused before anything of it is
// written to a disk, and the run goes on once the server is mended.
func TestBadDownloads(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	s.fleet.Images().SetFaults(images.Faults{HTML: true})
	s.stuck(run.Preflight, nil)
	s.abort()
	for name, bad := range map[string]func(*run.Node){
		"truncated": func(n *run.Node) {
			s.fleet.Images().SetFaults(images.Faults{Truncate: 4 * layout.MiB})
			n.Image.SHA256, n.Image.RawSHA256 = "", ""
		},
		"another digest": func(n *run.Node) {
			s.fleet.Images().SetFaults(images.Faults{})
			n.Image.SHA256, n.Image.RawSHA256 = "", wrongDigest
		},
	} {
		status := s.stuck(run.Stage, bad)
		require.Nil(t, status.Facts.Written, name)
		s.emptySystemDisk()
		s.abort()
	}
	s.fleet.Images().SetFaults(images.Faults{})
	status := s.ready(nil)
	require.True(t, status.Facts.Rescue.Reused, "no reboot too many")
}

// emptySystemDisk wants a blank table on the system disk: nothing of an
// image.
func (s *stack) emptySystemDisk() {
	s.t.Helper()
	require.NoError(s.t, s.machine.EditDisk(1, func(f layout.File, size int64) error {
		require.Empty(s.t, layout.Read(f, size))
		require.True(s.t, layout.HasBootSignature(f))
		return nil
	}))
}

// A rescue system without mdadm: what needs it is named before anything is
// touched.
func TestRescueWithoutMdadm(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	s.machine.SetFaults(qemu.Faults{HideTools: "mdadm"})
	before := [2]string{s.region(1, 0, 2*layout.MiB), s.region(2, 0, 2*layout.MiB)}
	status := s.stuck(run.DiskPrep, nil)
	require.Contains(t, status.Problem.Message, "mdadm")
	s.abort()
	require.NoError(t, s.machine.PowerOff())
	// Assembling an array counts in its superblocks: nothing else differs.
	for slot := 1; slot <= 2; slot++ {
		require.NoError(t, s.machine.EditDisk(slot, func(f layout.File, size int64) error {
			require.Len(t, layout.Read(f, size), 4)
			return nil
		}))
		require.Equal(t, before[slot-1], s.region(slot, 0, 2*layout.MiB), "table and boot loader")
	}
	s.machine.SetFaults(qemu.Faults{})
	s.ready(func(n *run.Node) { n.Rescue.Fresh = true })
}

// Too little RAM for the image, then a system disk that fails in the middle
// of the write.
func TestShortRAMThenFailingDisk(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	s.machine.SetFaults(qemu.Faults{SHMSize: "8m"})
	status := s.stuck(run.Stage, nil)
	require.Contains(t, status.Problem.Message, "RAM")
	s.abort()

	s.machine.SetFaults(qemu.Faults{WriteErrorDisk: 1, WriteErrorAt: 52 * layout.MiB})
	status = s.stuck(run.Write, func(n *run.Node) { n.Rescue.Fresh = true })
	require.Equal(t, "NeedsOperator", status.Problem.Class)
	s.emptySystemDisk() // a half-written disk never looks like Talos
	s.abort()

	s.machine.SetFaults(qemu.Faults{})
	s.ready(func(n *run.Node) { n.Rescue.Fresh = true })
}

// The reboot is accepted and ignored: the old system goes on answering SSH,
// with the very key, and is never taken for rescue.
func TestOldSystemAnswers(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	s.installedByHand()
	// Long enough for a boot of this computer, however busy it is.
	booted := time.Since(s.boot(len(s.machine.Boots())).Started)
	s.machine.SetFaults(qemu.Faults{IgnoreReboots: 1})
	status := s.ready(func(n *run.Node) { n.Timeouts.RescueBoot = max(30*time.Second, 3*booted) })
	require.NotZero(t, status.Rewinds, "it asked again")
}

// A rescue that never comes: bounded, then stuck and visible.
func TestRescueNeverComes(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	s.machine.SetFaults(qemu.Faults{RescueNeverUp: true})
	before := s.digests()
	status := s.settle(s.start(func(n *run.Node) { n.Timeouts.RescueBoot = 8 * time.Second }))
	require.Equal(t, run.Stuck, status.State)
	require.Contains(t, status.Problem.Erased, "nothing")
	require.Equal(t, before, s.digests())
}
