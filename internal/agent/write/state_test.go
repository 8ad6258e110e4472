//go:build !race

package write_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/state"
	"github.com/ironlot/ironlot/internal/agent/write"
)

const (
	canary     = "canary-7f3a"
	withState  = "EFI BIOS BOOT META STATE"
	stateDisk  = 400 * mib
	stateImage = 16 * mib
)

func stateConfig() []byte { return []byte("version: v1alpha1\nmachine:\n  token: " + canary + "\n") }

// newState gives a host whose one disk held an older Talos, and the spec that
// writes an image and STATE to it.
func newState(t testing.TB, sector int, edit func(raw []byte)) (*hosttest.Host, *hosttest.Disk, []byte, api.WriteSpec) {
	t.Helper()
	d := hosttest.NewDisk(t, "sda", "S1", stateDisk)
	d.Info.SectorSize = sector
	oldTalos(t, d)
	h := hosttest.New(t, d)
	raw := hosttest.Image(t, stateImage, sector)
	if edit != nil {
		edit(raw)
	}
	spec := stageImage(t, h, d, raw)
	spec.State = &api.StateSpec{Config: stateConfig()}
	return h, d, raw, spec
}

// tables gives the primary table of a disk and its backup, read on its own.
func tables(t testing.TB, d *hosttest.Disk) (primary, backup *gpt.Table) {
	t.Helper()
	f, err := os.Open(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, sector := int64(d.Info.Size), d.Info.SectorSize
	primary, err = gpt.Parse(f, size, sector)
	if err != nil {
		t.Fatal(err)
	}
	if backup, err = gpt.Parse(withoutPrimary{f, int64(2 * sector)}, size, sector); err != nil || !backup.Backup {
		t.Fatalf("backup: %+v, %v", backup, err)
	}
	backup.Backup = false
	return primary, backup
}

// withoutPrimary reads zeros up to an offset.
type withoutPrimary struct {
	io.ReaderAt
	until int64
}

func (r withoutPrimary) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	if off < r.until {
		clear(p[:min(int64(len(p)), r.until-off)])
	}
	return n, err
}

// configOn reads the config out of the disk's STATE.
func configOn(t testing.TB, d *hosttest.Disk) []byte {
	t.Helper()
	f, err := os.Open(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := gpt.Parse(f, int64(d.Info.Size), d.Info.SectorSize)
	if err != nil {
		return nil
	}
	for _, p := range table.Partitions {
		if p.Name == state.Label {
			config, err := state.Config(io.NewSectionReader(f, p.Offset, p.Size))
			if err != nil {
				t.Fatal(err)
			}
			return config
		}
	}
	return nil
}

func TestState(t *testing.T) {
	t.Parallel()
	for _, sector := range []int{512, 4096} {
		t.Run(fmt.Sprint(sector), func(t *testing.T) {
			t.Parallel()
			h, d, raw, spec := newState(t, sector, func(raw []byte) { raw[446] = 0x80 }) // active, for old firmware
			rep := &recorder{}
			got, err := write.Run(t.Context(), h, spec, rep)
			if err != nil {
				t.Fatal(err)
			}
			primary, backup := tables(t, d)
			if fmt.Sprint(primary) != fmt.Sprint(backup) {
				t.Errorf("two tables:\n%v\n%v", primary, backup)
			}
			image, err := gpt.Parse(bytes.NewReader(raw), stateImage, sector)
			if err != nil {
				t.Fatal(err)
			}
			meta := image.Partitions[3]
			part := primary.Partitions[4]
			if primary.DiskGUID != image.DiskGUID || fmt.Sprint(primary.Partitions[:4]) != fmt.Sprint(image.Partitions) {
				t.Errorf("the image's own partitions changed: %v", primary)
			}
			if part.Number != 5 || part.Name != "STATE" || part.Type.String() != "0FC63DAF-8483-4772-8E79-3D69D8477DE4" ||
				part.Offset != meta.Offset+meta.Size || part.Size != 320*mib || part.GUID == (gpt.GUID{}) {
				t.Errorf("STATE is %+v behind %+v", part, meta)
			}
			if last := binary.LittleEndian.Uint64(d.Get(t, int64(sector)+48, 8)); last <= uint64(stateDisk-mib)/uint64(sector) {
				t.Errorf("the table speaks of the disk up to sector %d", last)
			}
			if !bytes.Equal(d.Get(t, 0, 447), raw[:447]) || !bytes.Equal(d.Get(t, mib, meta.Offset+meta.Size-mib), raw[mib:meta.Offset+meta.Size]) {
				t.Error("the disk does not hold the image's boot code and partitions")
			}
			if !bytes.Equal(configOn(t, d), stateConfig()) {
				t.Errorf("STATE holds %q", configOn(t, d))
			}
			facts := got.State
			if facts == nil || facts.Partition != 5 || facts.Offset != part.Offset || facts.Size != part.Size || facts.ConfigBytes != len(stateConfig()) {
				t.Errorf("facts %+v", facts)
			}
			if want := part.Offset + part.Size; got.BytesVerified != want {
				t.Errorf("%d bytes read back of %d", got.BytesVerified, want)
			}
			if text := rep.log.String() + fmt.Sprintf("%v %+v %#v", got, spec, spec); strings.Contains(text, canary) {
				t.Error("the log or a printed spec shows the config")
			}
		})
	}
}

// TestStateOrder looks at the disk after every single operation: it shows a
// Talos only after the last write, and then with the config.
func TestStateOrder(t *testing.T) {
	t.Parallel()
	h, d, _, spec := newState(t, 512, nil)
	committed := 0
	d.After = func(op hosttest.Op) {
		if !signed(t, d) {
			t.Errorf("no boot signature after %v", op)
		}
		switch got := labels(t, d); got {
		case "":
			if committed > 0 {
				t.Errorf("blank again after %v", op)
			}
		case withState:
			committed++
			if committed == 1 && op != (hosttest.Op{Kind: hosttest.Write, Len: mib}) {
				t.Errorf("Talos shows after %v", op)
			}
			if !bytes.Equal(configOn(t, d), stateConfig()) {
				t.Errorf("Talos shows without its config after %v", op)
			}
		default:
			t.Errorf("after %v the disk shows %q", op, got)
		}
	}
	for range 2 { // and again over itself
		if _, err := write.Run(t.Context(), h, spec, report.Discard{}); err != nil {
			t.Fatal(err)
		}
		if committed != 3 { // the write itself, sync, reread
			t.Errorf("%d operations on the new table", committed)
		}
		committed = 0
	}
}
