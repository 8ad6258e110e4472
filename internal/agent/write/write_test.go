package write_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/stage"
	"github.com/ironlot/ironlot/internal/agent/write"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

const mib = 1 << 20

// stageImage stages an image and gives the spec that writes it to d.
func stageImage(t testing.TB, h *hosttest.Host, d *hosttest.Disk, served []byte) api.WriteSpec {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(served))
	}))
	defer s.Close()
	got, err := stage.Run(t.Context(), h, api.StageSpec{Image: run.Image{URL: s.URL}}, report.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	return api.WriteSpec{System: d.Info.Identity(), RawSHA256: got.RawSHA256, RawSize: got.RawSize}
}

// oldTalos fills a disk with random data and the partition table of an
// earlier Talos over it.
func oldTalos(t testing.TB, d *hosttest.Disk) {
	t.Helper()
	size := int64(d.Info.Size)
	junk := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{9}).Read(junk) // never fails
	d.Put(t, junk, 0)
	head, tail, err := gpt.Encode(size, d.Info.SectorSize, gpt.Table{Partitions: []gpt.Partition{
		{Number: 5, Name: "STATE", Type: gpt.NewGUID(), GUID: gpt.NewGUID(), Offset: 4 * mib, Size: mib},
	}})
	if err != nil {
		t.Fatal(err)
	}
	d.Put(t, head, 0)
	d.Put(t, tail, size-int64(len(tail)))
}

// labels reads the names of the partitions that a disk shows.
func labels(t testing.TB, d *hosttest.Disk) string {
	t.Helper()
	f, err := os.Open(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := gpt.Parse(f, int64(d.Info.Size), d.Info.SectorSize)
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, p := range table.Partitions {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

func signed(t testing.TB, d *hosttest.Disk) bool {
	return bytes.Equal(d.Get(t, 510, 2), []byte{0x55, 0xaa})
}

// untouched fails the test if anything was done to the disk.
func untouched(t *testing.T, d *hosttest.Disk) {
	t.Helper()
	if ops := d.Ops(); len(ops) > 0 {
		t.Errorf("the disk was touched: %v", ops)
	}
}

type recorder struct {
	report.Discard
	mu  sync.Mutex
	log strings.Builder
}

func (r *recorder) Log(e api.LogEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.log, "%s: %s\n", e.Event, e.Text)
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		disk, img  int64
		sector     int
		method     string
		wantMethod string
	}{
		{"discard", 64 * mib, 16 * mib, 512, "discard", "discard"},
		{"write-zeroes", 64 * mib, 16 * mib, 512, "write-zeroes", "write-zeroes"},
		{"written", 64 * mib, 16 * mib, 512, "written", "written"},
		{"as large as the disk", 16 * mib, 16 * mib, 512, "discard", "discard"},
		{"into the last MiB", 16*mib + 4096, 16 * mib, 512, "discard", "discard"},
		{"odd disk", 64*mib + 512*3, 16 * mib, 512, "discard", "discard"},
		{"4Kn", 64 * mib, 16 * mib, 4096, "discard", "discard"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw := hosttest.Image(t, tt.img, tt.sector)
			d := hosttest.NewDisk(t, "sdb", "S1", tt.disk)
			d.Method, d.Info.SectorSize = tt.method, tt.sector
			oldTalos(t, d)
			h := hosttest.New(t, hosttest.NewDisk(t, "sda", "S0", 64*mib), d)
			spec := stageImage(t, h, d, raw)
			spec.System.Name = "sda" // names are not to be trusted
			got, err := write.Run(t.Context(), h, spec, report.Discard{})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(d.Get(t, 0, tt.img), raw) {
				t.Error("the disk does not hold the image")
			}
			if rest := tt.disk - tt.img - mib; rest > 0 && !image.IsZero(d.Get(t, tt.img, rest)) {
				t.Error("old data is left behind the image")
			}
			if got.Serial != "S1" || got.BytesVerified != tt.img || got.ZeroMethod != tt.wantMethod || got.BytesZeroed != tt.disk-2*mib ||
				got.BytesWritten < 2*mib || got.BytesWritten > tt.img || got.Seconds <= 0 || got.MBPerSecond <= 0 {
				t.Errorf("facts %+v", got)
			}
			if got := labels(t, d); got != "EFI BIOS BOOT META" {
				t.Errorf("the disk shows %q", got)
			}
			untouched(t, h.Disks[0])
			if ops := d.Ops(); ops[len(ops)-1].Kind != hosttest.Reread {
				t.Errorf("last was %v", ops[len(ops)-1])
			}
		})
	}
}

// TestOrder looks at the disk after every single operation.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{64 * mib, 16 * mib} {
		d := hosttest.NewDisk(t, "sda", "S1", size)
		oldTalos(t, d)
		h := hosttest.New(t, d)
		spec := stageImage(t, h, d, hosttest.Image(t, 16*mib, 512))
		blank, committed := 0, 0
		d.After = func(op hosttest.Op) {
			if !signed(t, d) {
				t.Errorf("no boot signature after %v", op)
			}
			switch got := labels(t, d); got {
			case "":
				blank++
				if committed > 0 {
					t.Errorf("blank again after %v", op)
				}
			case "EFI BIOS BOOT META":
				committed++
				if committed == 1 && op != (hosttest.Op{Kind: hosttest.Write, Len: mib}) {
					t.Errorf("Talos shows after %v", op)
				}
			default:
				t.Errorf("after %v the disk shows %q", op, got)
			}
		}
		if _, err := write.Run(t.Context(), h, spec, report.Discard{}); err != nil {
			t.Fatal(err)
		}
		if blank < 8 || committed != 3 { // the write itself, sync, reread
			t.Errorf("%d operations on a blank table, %d on that of the image", blank, committed)
		}
	}
}

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
		"keeps all":             {func(t *testing.T, d *hosttest.Disk) { oldTalos(t, d) }, "discard", "zeros are written instead"},
		"keeps a STATE":         {func(t *testing.T, d *hosttest.Disk) { d.Put(t, []byte("XFSB"), 40*mib) }, "discard", "zeros are written instead"},
		"keeps some":            {func(t *testing.T, d *hosttest.Disk) { d.Put(t, []byte("old"), hole) }, "discard", "zeros included"},
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
			if tt.method == "discard" && !image.IsZero(d.Get(t, 40*mib, 4096)) {
				t.Error("the old STATE is still there")
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

func TestRefused(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 16*mib, 512)
	sum := sha256.Sum256(raw)
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
		}, fault.NeedsOperator, ""},
		"4Kn": {func(_ *testing.T, _ *hosttest.Host, d *hosttest.Disk, _ *api.WriteSpec) {
			d.Info.SectorSize = 4096
		}, fault.NeedsOperator, "sectors of 4096 bytes and the image's partition table counts in sectors of 512 bytes"},
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
			spec.RawSHA256 = strings.Repeat("a", 64)
		}, fault.RescueLost, hex.EncodeToString(sum[:])},
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
