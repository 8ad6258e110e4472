package prep_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/prep"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
)

// TestKernelThatRefuses: what passes by itself is tried again, what does not
// is told with what to look at.
func TestKernelThatRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*hosttest.Host)
		class  fault.Class
		want   string
	}{
		"no disks": {func(h *hosttest.Host) { h.Blind = syscall.EIO }, fault.Transient, "the system's facts cannot be read: input/output error"},
		"disks that go after the inventory": {func(h *hosttest.Host) {
			h.Inventory.Tools = []string{"mdadm", "lvm"}
			tool := h.Tool
			h.Tool = func(args ...string) (out host.Output, err error) {
				h.Blind = syscall.EIO
				return tool(args...)
			}
		}, fault.Transient, "the list of disks cannot be read: input/output error"},
		"a disk that cannot be opened": {func(h *hosttest.Host) { _ = os.Remove(h.Disks[1].Path()) },
			fault.Transient, "disk sdb cannot be opened to be read: "},
		"a disk with another name": {func(h *hosttest.Host) {
			h.Disks[0].After = func(hosttest.Op) { h.Disks[1].Info.Name = "sdz" }
		}, fault.Transient, "now sdz changed its name while it was held"},
		"tables that are not read again": {func(h *hosttest.Host) {
			h.Disks[0].Before = func(op hosttest.Op) error {
				if op.Kind == hosttest.Reread {
					return syscall.EIO
				}
				return nil
			}
		}, fault.NeedsOperator, "the kernel cannot read the partition table of sda again: input/output error; look on the machine at what keeps a partition open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, spec := raid(t)
			c.change(h)
			_, err := prep.Run(t.Context(), h, spec, report.Discard{})
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.class, fault.ClassOf(err))
		})
	}
}
