package write_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/write"
	"github.com/ironlot/ironlot/internal/fault"
)

// TestEveryFailure has every operation fail, and be the one during which the
// job is canceled: the disk keeps its boot signature and never shows Talos.
func TestEveryFailure(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 8*mib, 512)
	attempt := func(t *testing.T, fail int, cancel bool) (ops int, err error) {
		d := hosttest.NewDisk(t, "sda", "S1", 16*mib)
		oldTalos(t, d)
		h := hosttest.New(t, d)
		spec := stageImage(t, h, d, raw)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		failed := false
		d.Before = func(op hosttest.Op) error {
			ops++
			if ops-1 != fail {
				return nil
			}
			failed = true
			if cancel {
				stop()
				return nil
			}
			return syscall.EIO
		}
		_, err = write.Run(ctx, h, spec, report.Discard{})
		if !failed {
			return ops, err
		}
		if !signed(t, d) {
			t.Errorf("operation %d of %d: no boot signature", fail, ops)
		}
		want := ""
		if fail == 0 && !cancel {
			want = "STATE" // nothing was written yet
		}
		if err == nil {
			want = "EFI BIOS BOOT META"
		}
		if got := labels(t, d); got != want {
			t.Errorf("operation %d: the disk shows %q, want %q (%v)", fail, got, want, err)
		}
		// The disk is closed, and the next attempt succeeds.
		d.Before = nil
		if _, err := write.Run(t.Context(), h, spec, report.Discard{}); err != nil || !bytes.Equal(d.Get(t, 0, 8*mib), raw) {
			t.Errorf("after operation %d failed, the next attempt: %v", fail, err)
		}
		return ops, err
	}
	total, err := attempt(t, -1, false)
	if err != nil {
		t.Fatal(err)
	}
	for n := range total {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			last := n == total-1 // the kernel's reread is not part of the proof
			if _, err := attempt(t, n, false); (err == nil) != last || err != nil && (fault.ClassOf(err) != fault.Transient || !errors.Is(err, syscall.EIO)) {
				t.Errorf("operation %d of %d failed: %v", n, total, err)
			}
			if _, err := attempt(t, n, true); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("canceled at operation %d of %d: %v", n, total, err)
			}
		})
	}
}

func TestLyingDiscard(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 16*mib, 512)
	hole := int64(8*mib + 600<<10) // no data of the image is there, no partition starts there
	if !image.IsZero(raw[hole : hole+4096]) {
		t.Fatal("this is not a hole")
	}
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, d *hosttest.Disk)
		method  string
		log     string
	}{
		"keeps all":     {func(t *testing.T, d *hosttest.Disk) { oldTalos(t, d) }, "discard", "zeros are written instead"},
		"keeps a STATE": {func(t *testing.T, d *hosttest.Disk) { d.Put(t, []byte("XFSB"), 40*mib) }, "discard", "zeros are written instead"},
		"keeps some": {func(t *testing.T, d *hosttest.Disk) {
			d.Put(t, []byte("old"), hole)
			d.Put(t, []byte("old"), hole+32*mib)
		}, "discard", "zeros included"},
		"zeroes nothing at all": {func(t *testing.T, d *hosttest.Disk) { oldTalos(t, d) }, "write-zeroes", "zeros included"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := hosttest.NewDisk(t, "sda", "S1", 64*mib)
			d.LyingDiscard, d.Method = true, tt.method
			tt.prepare(t, d)
			h, rep := hosttest.New(t, d), &recorder{}
			got, err := write.Run(t.Context(), h, stageImage(t, h, d, raw), rep)
			if err != nil {
				t.Fatal(err)
			}
			if got.ZeroMethod != "written" || got.BytesVerified != 16*mib || !bytes.Equal(d.Get(t, 0, 16*mib), raw) {
				t.Errorf("facts %+v", got)
			}
			if !strings.Contains(rep.log.String(), tt.log) {
				t.Errorf("log:\n%s", rep.log.String())
			}
			if !image.IsZero(d.Get(t, 16*mib, 47*mib)) {
				t.Error("what is behind the image is still there")
			}
		})
	}
}

// TestBadDisk: the disk reads back something else than was written.
func TestBadDisk(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 16*mib, 512)
	for name, at := range map[string]int64{"data": mib + 100, "hole": 8*mib + 600<<10 + 5, "last byte": 16*mib - 1, "table": 512 + 60, "first byte": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := hosttest.NewDisk(t, "sda", "S1", 32*mib)
			oldTalos(t, d)
			d.Corrupt = func(p []byte, off int64) {
				for _, bad := range []int64{at, at + 4*mib} {
					if off <= bad && bad < off+int64(len(p)) && len(p) > 8192 {
						p[bad-off] ^= 0xff
					}
				}
			}
			h := hosttest.New(t, d)
			_, err := write.Run(t.Context(), h, stageImage(t, h, d, raw), report.Discard{})
			e, ok := fault.As(err)
			if !ok || e.Class != fault.NeedsOperator || e.Remedy == "" {
				t.Fatalf("got %v", err)
			}
			first := at
			if at < mib {
				first += 4 * mib // the head is looked at last
			}
			if want := fmt.Sprintf("byte %d reads %#02x, and the image has %#02x", first, ^raw[first], raw[first]); !strings.Contains(e.Message, want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if labels(t, d) != "" || !signed(t, d) {
				t.Errorf("the disk shows %q", labels(t, d))
			}
		})
	}
}

// TestBadHead: only the first MiB reads back wrong, after it was written.
func TestBadHead(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "sda", "S1", 32*mib)
	d.Corrupt = func(p []byte, off int64) {
		if off == 0 {
			p[700] ^= 1
		}
	}
	h := hosttest.New(t, d)
	_, err := write.Run(t.Context(), h, stageImage(t, h, d, hosttest.Image(t, 16*mib, 512)), report.Discard{})
	if fault.ClassOf(err) != fault.NeedsOperator || err == nil || !strings.Contains(err.Error(), "byte 700 ") {
		t.Errorf("got %v", err)
	}
	if labels(t, d) != "" || !signed(t, d) {
		t.Errorf("the disk shows %q", labels(t, d))
	}
}

// TestWhereAndWhatToDo: an error of the disk tells where in bytes and in the
// unit of the log, and what a person can really do.
func TestWhereAndWhatToDo(t *testing.T) {
	t.Parallel()
	for kind, where := range map[hosttest.Kind]string{
		hosttest.Zero:  "zeroed between byte 1048576 (1 MiB) and byte 32505856 (31 MiB): input/output error",
		hosttest.Write: "written between byte 0 (0 MiB) and byte 1048576 (1 MiB): input/output error",
	} {
		d := hosttest.NewDisk(t, "sda", "S1", 32*mib)
		d.Before = func(op hosttest.Op) error {
			if op.Kind == kind {
				return syscall.EIO
			}
			return nil
		}
		h := hosttest.New(t, d)
		_, err := write.Run(t.Context(), h, stageImage(t, h, d, hosttest.Image(t, 16*mib, 512)), report.Discard{})
		e, ok := fault.As(err)
		if !ok || !strings.Contains(e.Message, where) || !strings.Contains(e.Remedy, "--another-disk") || !strings.Contains(e.Remedy, "systemDisk") {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}
