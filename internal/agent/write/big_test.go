package write_test

import (
	"testing"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/write"
)

const gib = 1 << 30

// TestHugeDisk: what is zeroed of a disk of 4 TiB depends on what it costs.
func TestHugeDisk(t *testing.T) {
	t.Parallel()
	for method, zeroed := range map[string]int64{"discard": 4096*gib - 2*mib, "write-zeroes": 16*mib + gib - mib, "written": 16*mib + gib - mib} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			d := hosttest.NewDisk(t, "sda", "S1", 4096*gib)
			d.Method = method
			h := hosttest.New(t, d)
			got, err := write.Run(t.Context(), h, stageImage(t, h, d, hosttest.Image(t, 16*mib, 512)), report.Discard{})
			if err != nil {
				t.Fatal(err)
			}
			if got.BytesZeroed != zeroed || got.ZeroMethod != method {
				t.Errorf("facts %+v, want %d bytes zeroed", got, zeroed)
			}
			if n := len(d.Ops()); n > 150 {
				t.Errorf("%d operations", n)
			}
		})
	}
}

// BenchmarkWrite writes 512 MiB, mostly zeros, to a file.
func BenchmarkWrite(b *testing.B) {
	d := hosttest.NewDisk(b, "sda", "S1", gib)
	h := hosttest.New(b, d)
	spec := stageImage(b, h, d, hosttest.Image(b, 512*mib, 512))
	b.SetBytes(spec.RawSize)
	for b.Loop() {
		if _, err := write.Run(b.Context(), h, spec, report.Discard{}); err != nil {
			b.Fatal(err)
		}
	}
}
