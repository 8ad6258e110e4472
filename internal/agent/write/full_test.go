//go:build !race

package write_test

import (
	"testing"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/write"
)

// TestFullSize writes an image of the size of a Talos image.
func TestFullSize(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "nvme0n1", "S1", 20*gib)
	h := hosttest.New(t, d)
	spec := stageImage(t, h, d, hosttest.ImageZstd(t, 4247*mib))
	got, err := write.Run(t.Context(), h, spec, report.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", got)
	if got.BytesVerified != 4247*mib || got.BytesWritten > 3*mib || labels(t, d) != "EFI BIOS BOOT META" {
		t.Errorf("facts %+v, the disk shows %q", got, labels(t, d))
	}
}
