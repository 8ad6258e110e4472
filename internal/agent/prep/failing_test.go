package prep_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/prep"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// TestADiskFails has a disk that refuses writes: the
// remedy is what the lot file must say of it, as system disk or as another.
func TestADiskFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failing int // of the disks A, the system disk, and B
		message string
		remedy  string
	}{
		"system disk":    {0, "A, TEST", "--batch LOT.YAML --another-disk`"},
		"secondary disk": {1, "B, TEST", "`starter retry LOT NODE --batch LOT.YAML`;"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := hosttest.NewDisk(t, "sda", "A", 64<<20), hosttest.NewDisk(t, "sdb", "B", 64<<20)
			for _, d := range []*hosttest.Disk{a, b} {
				d.Put(t, []byte("XFSB"), 0)
			}
			[]*hosttest.Disk{a, b}[c.failing].Before = func(op hosttest.Op) error {
				if op.Kind == hosttest.Write {
					return syscall.EIO
				}
				return nil
			}
			_, err := prep.Run(t.Context(), hosttest.New(t, a, b), api.DiskPrepSpec{
				System: a.Info.Identity(), Secondary: []run.Disk{b.Info.Identity()},
			}, report.Discard{})
			f, ok := fault.As(err)
			require.True(t, ok, "%v", err)
			require.Equal(t, fault.NeedsOperator, f.Class)
			require.Contains(t, f.Message, c.message)
			require.Contains(t, f.Remedy, "`secondaryDisks: keep` for this node")
			require.Contains(t, f.Remedy, c.remedy)
		})
	}
}
