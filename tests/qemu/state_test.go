package qemu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/run"
)

// Delivery by STATE: the config is on the disk before the first boot. The node
// never takes one from anybody, and a real kernel mounts the filesystem that
// was written without mkfs.xfs.
func TestDeliveryByState(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Delivered: simulated.LVM})
	status := s.ready(func(n *run.Node) { n.Delivery = run.ByState })
	state := status.Facts.Written.State
	require.NotNil(t, state)
	require.Equal(t, "configured", status.Facts.Booted.State)
	require.Zero(t, status.Facts.Applied.WindowSeconds)
	talos := len(s.machine.Boots())
	s.console(talos, "machine config loaded successfully")
	for number := 1; number <= talos; number++ {
		require.False(t, s.printed(number, "in maintenance"), "the door was never open")
	}
	require.True(t, s.equalsImage(1))
	require.NoError(t, s.machine.EditDisk(1, func(f layout.File, size int64) error {
		part, ok := layout.Find(layout.Read(f, size), layout.State)
		require.True(t, ok)
		require.Equal(t, []int64{state.Offset, state.Size}, []int64{part.Offset, part.Size})
		return nil
	}))
	config, err := s.machine.StateConfig()
	require.NoError(t, err)
	require.Len(t, config, state.ConfigBytes)

	h := s.rescueByHand()
	device := partition(h.disk(1), state.Partition)
	h.do("mount -t xfs -o ro,norecovery " + device + " /mnt")
	require.Equal(t, string(config), strings.TrimSuffix(h.do("cat /mnt/config.yaml"), "\n")+"\n", "the kernel reads the same file")
	h.do("umount /mnt; mount -t xfs " + device + " /mnt; touch /mnt/written; umount /mnt")
}
