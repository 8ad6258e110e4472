package write_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/stage"
	"github.com/ironlot/ironlot/internal/agent/write"
	"github.com/ironlot/ironlot/internal/fault"
)

// untouched fails the test if anything was done to the disk.
func untouched(t *testing.T, d *hosttest.Disk) {
	t.Helper()
	if ops := d.Ops(); len(ops) > 0 {
		t.Errorf("the disk was touched: %v", ops)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 16*mib, 512)
	sum := image.NewDataDigest()
	sum.Add(raw, 0)
	digest := sum.Sum(int64(len(raw)))
	for name, tt := range map[string]struct {
		change func(t *testing.T, h *hosttest.Host, d *hosttest.Disk, spec *api.WriteSpec)
		class  fault.Class
		text   string
	}{
		"holder": {func(_ *testing.T, _ *hosttest.Host, d *hosttest.Disk, _ *api.WriteSpec) {
			d.Info.Holders = []api.Holder{{Kind: api.HolderMD, Name: "md127", Device: "sda2"}}
		}, fault.NeedsOperator, "in use by md md127 (on sda2)"},
		"read-only": {func(_ *testing.T, _ *hosttest.Host, d *hosttest.Disk, _ *api.WriteSpec) {
			d.Info.ReadOnly = true
		}, fault.NeedsOperator, "now sda (read-only) cannot be used"},
		"4Kn": {func(_ *testing.T, _ *hosttest.Host, d *hosttest.Disk, _ *api.WriteSpec) {
			d.Info.SectorSize = 4096
		}, fault.NeedsOperator, "sectors of 4096 bytes and the image's partition table counts in sectors of 512 bytes"},
		"no list of disks": {func(_ *testing.T, h *hosttest.Host, _ *hosttest.Disk, _ *api.WriteSpec) {
			h.Blind = syscall.EIO
		}, fault.Transient, "the machine's disks cannot be listed: input/output error"},
		"gone since": {func(t *testing.T, _ *hosttest.Host, d *hosttest.Disk, _ *api.WriteSpec) {
			if err := os.Remove(d.Path()); err != nil {
				t.Fatal(err)
			}
		}, fault.Transient, "disk sda (serial S1) cannot be opened: "},
		"another serial": {func(_ *testing.T, _ *hosttest.Host, _ *hosttest.Disk, spec *api.WriteSpec) {
			spec.System.Serial = "S9"
		}, fault.NeedsOperator, "not in the machine"},
		"another WWN": {func(_ *testing.T, _ *hosttest.Host, _ *hosttest.Disk, spec *api.WriteSpec) {
			spec.System.WWN = "naa.1"
		}, fault.NeedsOperator, "not in the machine"},
		"staged file gone": {func(t *testing.T, h *hosttest.Host, _ *hosttest.Disk, _ *api.WriteSpec) {
			if err := os.Remove(stage.Image(h.RAMDir())); err != nil {
				t.Fatal(err)
			}
		}, fault.RescueLost, "gone"},
		"staged file short": {func(t *testing.T, h *hosttest.Host, _ *hosttest.Disk, _ *api.WriteSpec) {
			if err := os.Truncate(stage.Image(h.RAMDir()), mib); err != nil {
				t.Fatal(err)
			}
		}, fault.RescueLost, "has 1048576 bytes and should have 16777216"},
		"another image": {func(_ *testing.T, _ *hosttest.Host, _ *hosttest.Disk, spec *api.WriteSpec) {
			spec.DataSHA256 = strings.Repeat("a", 64)
		}, fault.RescueLost, digest},
		"another size": {func(_ *testing.T, _ *hosttest.Host, _ *hosttest.Disk, spec *api.WriteSpec) {
			spec.RawSize = mib
		}, fault.RescueLost, "expected were 1048576"},
		"busy all the same": {func(t *testing.T, h *hosttest.Host, d *hosttest.Disk, _ *api.WriteSpec) {
			other, err := h.OpenDisk(t.Context(), d.Info.Name, true)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = other.Close() })
		}, fault.NeedsOperator, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := hosttest.NewDisk(t, "sda", "S1", 64*mib)
			h := hosttest.New(t, d)
			spec := stageImage(t, h, d, raw)
			tt.change(t, h, d, &spec)
			_, err := write.Run(t.Context(), h, spec, report.Discard{})
			e, ok := fault.As(err)
			if !ok || e.Class != tt.class || !strings.Contains(e.Message, tt.text) || e.Class == fault.NeedsOperator && e.Remedy == "" {
				t.Errorf("got %v, want %q", err, tt.text)
			}
			untouched(t, d)
		})
	}
}

func TestTooSmall(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "sda", "S1", 16*mib-512)
	h := hosttest.New(t, d)
	_, err := write.Run(t.Context(), h, stageImage(t, h, d, hosttest.Image(t, 16*mib, 512)), report.Discard{})
	if fault.ClassOf(err) != fault.NeedsOperator || err == nil || !strings.Contains(err.Error(), "16776704 bytes and the image needs 16777216") {
		t.Errorf("got %v", err)
	}
	untouched(t, d)
}
