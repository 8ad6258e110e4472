package qemu

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/simulated"
)

// Failure 3 that works: rescue, write, normal boot.
func TestADeliveredServerReachesReady(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Delivered: simulated.RAID1})
	status := s.ready(nil)
	require.Zero(t, status.Rewinds)
	require.Equal(t, s.fleet.Images().RawSHA256(), status.Facts.Staged.RawSHA256)
	boots := s.machine.Boots()
	require.Equal(t, "guest-reset", boots[0].Ended, "SysRq was seen by QEMU's end")
	require.True(t, s.equalsImage(1))
	config, err := s.machine.StateConfig()
	require.NoError(t, err)
	require.NotEmpty(t, config, "the config is on the disk")
}

// equalsImage compares the written disk with the image from the host's side:
// all but both partition tables, which Talos' first boot changes.
func (s *stack) equalsImage(slot int) bool {
	s.t.Helper()
	file, err := s.fleet.Images().File(images.Raw)
	require.NoError(s.t, err)
	image, err := os.ReadFile(file.Path)
	require.NoError(s.t, err)
	equal := false
	require.NoError(s.t, s.machine.EditDisk(slot, func(f layout.File, _ int64) error {
		disk := make([]byte, len(image))
		_, err := f.ReadAt(disk, 0)
		equal = bytes.Equal(disk[layout.MiB:len(image)-layout.MiB], image[layout.MiB:len(image)-layout.MiB])
		return err
	}))
	return equal
}
