package qemu

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/simulated"
)

// deliveries is how often failure 7 is tried.
const deliveries = 10

// Failure 7, "it works on some machines": one image and one kind of lot on
// randomly drawn deliveries. All become Ready, and their disks end equal.
func TestFailure7TenDeliveries(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	systems, seconds := map[string]int{}, map[string]int{}
	t.Run("group", func(t *testing.T) {
		for n := range deliveries {
			draw := rand.New(rand.NewPCG(2026, uint64(n)))
			t.Run(fmt.Sprint(n+1), func(t *testing.T) {
				t.Parallel()
				system, second := deliverAndProvision(t, draw)
				mu.Lock()
				defer mu.Unlock()
				systems[system]++
				seconds[second]++
			})
		}
	})
	if !t.Failed() {
		require.Len(t, systems, 1, "every system disk holds the same bytes")
		require.Len(t, seconds, 1, "every second disk holds the same bytes")
	}
}

// deliverAndProvision draws a delivery and provisions it.
func deliverAndProvision(t *testing.T, draw *rand.Rand) (system, second string) {
	o := lab.Options{
		Delivered: []simulated.Delivered{simulated.RAID1, simulated.LVM, simulated.Delivered(qemu.Many)}[draw.IntN(3)],
		NVMe:      draw.IntN(3) == 0, SwapNames: draw.IntN(2) == 0, Seed: draw.Uint64(),
	}
	s := newStack(t, o)
	leftovers := []string{"nothing", "old Talos on the first disk", "old Talos on the second disk", "ex-members", "stale STATE"}
	left := leftovers[draw.IntN(len(leftovers))]
	t.Logf("drawn: %s, NVMe %v, names swap %v, left over: %s", o.Delivered, o.NVMe, o.SwapNames, left)
	s.leave(left)
	status := s.ready(nil)
	require.Equal(t, "LAB0001A", status.Facts.System.Serial)
	require.True(t, s.equalsImage(1))
	// Both tables hold GUIDs that are drawn anew, and STATE the lot's secrets.
	return s.region(1, layout.MiB, imageSize-layout.MiB), s.region(2, layout.MiB, -layout.MiB)
}

// leave puts what an earlier life left on the disks.
func (s *stack) leave(what string) {
	s.t.Helper()
	edit := func(slot int, change func(layout.File, int64) error) {
		require.NoError(s.t, s.machine.EditDisk(slot, change))
	}
	old := func(f layout.File, size int64) error {
		return layout.Create(f, size, "talos image", []layout.Part{
			{Name: layout.EFI, Type: layout.TypeEFI, Size: 40 * layout.MiB}, {Name: layout.BIOS, Type: layout.TypeBIOS, Size: layout.MiB},
			{Name: layout.Boot, Type: layout.TypeLinux, Size: 40 * layout.MiB}, {Name: layout.Meta, Type: layout.TypeLinux, Size: layout.MiB},
			{Name: layout.State, Type: layout.TypeLinux, Size: 4 * layout.MiB}, {Name: layout.Ephemeral, Type: layout.TypeLinux},
		})
	}
	switch what {
	case "old Talos on the first disk":
		edit(1, old)
	case "old Talos on the second disk":
		edit(2, old)
	case "ex-members": // the superblocks stay where no partition is any more
		edit(2, func(f layout.File, size int64) error { return layout.Create(f, size, "other", nil) })
	case "stale STATE":
		require.NoError(s.t, s.machine.PutStaleState(2, s.fleet.Cluster().Worker))
	}
}

// region is the digest of a part of a disk, from the host's side; an end
// below 0 counts from the end of the disk.
func (s *stack) region(slot int, start, end int64) string {
	s.t.Helper()
	h := sha256.New()
	require.NoError(s.t, s.machine.EditDisk(slot, func(f layout.File, size int64) error {
		if end < 0 {
			end += size
		}
		_, err := io.Copy(h, io.NewSectionReader(f, start, end-start))
		return err
	}))
	return hex.EncodeToString(h.Sum(nil))
}
