package write_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/stage"
	"github.com/ironlot/ironlot/internal/agent/write"
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
	return api.WriteSpec{System: d.Info.Identity(), DataSHA256: got.DataSHA256, RawSize: got.RawSize}
}

// oldTalos fills a disk with random data and the partition table of an
// earlier Talos over it.
func oldTalos(t testing.TB, d *hosttest.Disk) {
	t.Helper()
	size := int64(d.Info.Size)
	junk := make([]byte, mib)
	_, _ = rand.NewChaCha8([32]byte{9}).Read(junk) // never fails
	d.Put(t, bytes.Repeat(junk, int(size/mib)+1)[:size], 0)
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
