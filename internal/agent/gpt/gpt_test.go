package gpt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/go-blockdevice/v2/blkid"

	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/testenv"
)

const mib = 1 << 20

// linux is the type of a Linux filesystem partition, as stored.
var linux = gpt.GUID{0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4}

func image(t testing.TB, size int64, sector int, table gpt.Table) []byte {
	t.Helper()
	head, tail, err := gpt.Encode(size, sector, table)
	if err != nil {
		t.Fatal(err)
	}
	disk := make([]byte, size)
	copy(disk, head)
	copy(disk[size-int64(len(tail)):], tail)
	return disk
}

func talos() gpt.Table {
	return gpt.Table{DiskGUID: gpt.NewGUID(), Partitions: []gpt.Partition{
		{Number: 1, Name: "EFI", Type: linux, GUID: gpt.NewGUID(), Offset: mib, Size: 2 * mib},
		{Number: 4, Name: "META", Type: linux, GUID: gpt.NewGUID(), Offset: 3 * mib, Size: mib},
		{Number: 5, Name: "STATE ünï", Type: linux, GUID: gpt.NewGUID(), Offset: 4 * mib, Size: 2 * mib, Attributes: 4},
	}}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, sector := range []int{512, 4096} {
		want := talos()
		disk := image(t, 8*mib, sector, want)
		got, err := gpt.Parse(bytes.NewReader(disk), 8*mib, sector)
		if err != nil {
			t.Fatalf("sector %d: %v", sector, err)
		}
		if got.Backup || got.DiskGUID != want.DiskGUID || len(got.Partitions) != 3 {
			t.Fatalf("sector %d: got %+v", sector, got)
		}
		for i, p := range got.Partitions {
			if p != want.Partitions[i] {
				t.Errorf("sector %d: partition %+v, want %+v", sector, p, want.Partitions[i])
			}
		}
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	for _, sector := range []int{512, 4096} {
		head, tail, err := gpt.Blank(8*mib, sector)
		if err != nil {
			t.Fatal(err)
		}
		if head[510] != 0x55 || head[511] != 0xAA {
			t.Error("no boot signature")
		}
		disk := make([]byte, 8*mib)
		copy(disk, head)
		if err := gpt.CheckBlank(bytes.NewReader(disk), 8*mib, sector); !errors.Is(err, gpt.ErrNone) {
			t.Errorf("without the backup: %v, want ErrNone", err)
		}
		copy(disk[len(disk)-len(tail):], tail)
		if err := gpt.CheckBlank(bytes.NewReader(disk), 8*mib, sector); err != nil {
			t.Error(err)
		}
	}
	full := image(t, 8*mib, 512, talos())
	if err := gpt.CheckBlank(bytes.NewReader(full), 8*mib, 512); !errors.Is(err, gpt.ErrDamaged) {
		t.Errorf("a table with partitions: %v", err)
	}
	first, _, _ := gpt.Blank(8*mib, 512)
	second, _, _ := gpt.Blank(8*mib, 512)
	if bytes.Equal(first, second) {
		t.Error("two blank tables share their disk GUID")
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	const size, last = 8 * mib, 8*mib - 512
	tests := map[string]struct {
		damage func(disk []byte)
		backup bool
		want   error
	}{
		"primary header zeroed":   {func(d []byte) { clear(d[512:1024]) }, true, nil},
		"primary header flipped":  {func(d []byte) { d[512+60] ^= 1 }, true, nil},
		"primary entries flipped": {func(d []byte) { d[1024] ^= 1 }, true, nil},
		"backup zeroed":           {func(d []byte) { clear(d[last:]) }, false, nil},
		"both zeroed":             {func(d []byte) { clear(d[512:1024]); clear(d[last:]) }, false, gpt.ErrNone},
		"both flipped":            {func(d []byte) { d[512+60] ^= 1; d[last+60] ^= 1 }, false, gpt.ErrDamaged},
		"one zeroed, one flipped": {func(d []byte) { clear(d[512:1024]); d[last+60] ^= 1 }, false, gpt.ErrDamaged},
		"headers swapped":         {func(d []byte) { copy(d[512:1024], d[last:]); clear(d[last:]) }, false, gpt.ErrDamaged},
		"huge header size":        {func(d []byte) { clear(d[last:]); binary.LittleEndian.PutUint32(d[512+12:], 1<<31) }, false, gpt.ErrDamaged},
		"nothing at all":          {func(d []byte) { clear(d) }, false, gpt.ErrNone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := image(t, size, 512, talos())
			tt.damage(disk)
			got, err := gpt.Parse(bytes.NewReader(disk), size, 512)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if err == nil && (got.Backup != tt.backup || len(got.Partitions) != 3) {
				t.Errorf("got %+v, want backup %v", got, tt.backup)
			}
		})
	}
}

func TestGeometry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		size   int64
		sector int
	}{{0, 512}, {-512, 512}, {67 * 512, 512}, {8*mib + 1, 512}, {8 * mib, 0}, {8 * mib, 1000}, {8 * mib, 1 << 20}, {13 * 4096, 4097}} {
		if _, _, err := gpt.Blank(tt.size, tt.sector); !errors.Is(err, gpt.ErrGeometry) {
			t.Errorf("Blank(%d, %d): %v", tt.size, tt.sector, err)
		}
		if _, err := gpt.Parse(bytes.NewReader(nil), tt.size, tt.sector); !errors.Is(err, gpt.ErrGeometry) {
			t.Errorf("Parse(%d, %d): %v", tt.size, tt.sector, err)
		}
	}
	for _, p := range []gpt.Partition{
		{Number: 0, Offset: mib, Size: mib}, {Number: 129, Offset: mib, Size: mib},
		{Number: 1, Offset: 512, Size: mib}, {Number: 1, Offset: mib, Size: 8 * mib},
		{Number: 1, Offset: mib + 1, Size: mib}, {Number: 1, Offset: mib, Size: 0},
		{Number: 1, Offset: mib, Size: mib, Name: strings.Repeat("x", 37)},
	} {
		p.Type = linux
		if _, _, err := gpt.Encode(8*mib, 512, gpt.Table{Partitions: []gpt.Partition{p}}); !errors.Is(err, gpt.ErrGeometry) {
			t.Errorf("Encode(%+v): %v", p, err)
		}
	}
}

// TestTalosReadsIt has the code that Talos itself uses to find partitions
// read our tables.
func TestTalosReadsIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "disk")
	for name, table := range map[string]gpt.Table{"blank": {DiskGUID: gpt.NewGUID()}, "talos": talos()} {
		if err := os.WriteFile(path, image(t, 8*mib, 512, table), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := blkid.ProbePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Name != "gpt" || !strings.EqualFold(info.UUID.String(), table.DiskGUID.String()) || len(info.Parts) != len(table.Partitions) {
			t.Fatalf("%s: Talos sees %q %v with %d partitions", name, info.Name, info.UUID, len(info.Parts))
		}
		for i, p := range info.Parts {
			if *p.PartitionLabel != table.Partitions[i].Name || int64(p.PartitionOffset) != table.Partitions[i].Offset {
				t.Errorf("%s: Talos sees %q at %d", name, *p.PartitionLabel, p.PartitionOffset)
			}
		}
	}
}

// TestToolsReadIt has sgdisk and sfdisk check our tables, and us read theirs.
func TestToolsReadIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "disk")
	write := func(table gpt.Table) {
		if err := os.WriteFile(path, image(t, 8*mib, 512, table), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(name string, args ...string) string {
		if _, err := exec.LookPath(name); err != nil {
			testenv.Lacks(t, name+" is not installed")
		}
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	write(gpt.Table{DiskGUID: gpt.NewGUID()})
	if out := tool("sgdisk", "-v", path); !strings.Contains(out, "No problems found") {
		t.Errorf("sgdisk on a blank table:\n%s", out)
	}
	write(talos())
	if out := tool("sgdisk", "-v", path); !strings.Contains(out, "No problems found") {
		t.Errorf("sgdisk:\n%s", out)
	}
	if out := tool("sfdisk", "--verify", path); !strings.Contains(out, "No errors detected") {
		t.Errorf("sfdisk:\n%s", out)
	}
	tool("sgdisk", "-Z", path)
	tool("sgdisk", "-a", "8", "-n", "3:2048:4095", "-c", "3:EPHEMERAL", path)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := gpt.Parse(f, 8*mib, 512)
	if err != nil || len(got.Partitions) != 1 || got.Partitions[0].Name != "EPHEMERAL" || got.Partitions[0].Number != 3 ||
		got.Partitions[0].Offset != mib || got.Partitions[0].Size != mib {
		t.Errorf("a table by sgdisk: %+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	const size = 128 << 10
	part := gpt.Table{Partitions: []gpt.Partition{{Number: 4, Name: "META", Type: linux, Offset: 64 << 10, Size: 4096}}}
	for _, sector := range []int{512, 4096} {
		for _, table := range []gpt.Table{{}, part} {
			head, tail, err := gpt.Encode(size, sector, table)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(head, tail, sector)
			f.Add([]byte{}, tail, sector)
		}
	}
	f.Fuzz(func(t *testing.T, head, tail []byte, sector int) {
		disk := make([]byte, size)
		copy(disk, head)
		copy(disk[max(0, len(disk)-len(tail)):], tail)
		table, err := gpt.Parse(bytes.NewReader(disk), size, sector)
		if (table == nil) == (err == nil) {
			t.Fatalf("table %v and error %v", table, err)
		}
		if err == nil {
			for _, p := range table.Partitions {
				if p.Offset < 0 || p.Size <= 0 || p.Offset+p.Size > size {
					t.Errorf("partition %+v lies off the disk", p)
				}
			}
		}
		blank := gpt.CheckBlank(bytes.NewReader(disk), size, sector)
		if blank == nil && (table == nil || table.Backup || len(table.Partitions) > 0) {
			t.Errorf("%+v counts as blank", table)
		}
	})
}
