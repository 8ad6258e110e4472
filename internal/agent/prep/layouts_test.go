//go:build linux

package prep_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/looptest"
)

func put(t *testing.T, d looptest.Device, off int64, p []byte) {
	t.Helper()
	f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(p, off)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// table writes a GPT with partitions of 16 MiB that hold what fill says.
func table(t *testing.T, d looptest.Device, sector int, fill map[string][]byte, names ...string) {
	t.Helper()
	var parts []gpt.Partition
	for i, name := range names {
		off := int64(1+16*i) * mib
		parts = append(parts, gpt.Partition{Number: i + 1, Name: name, Type: gpt.NewGUID(), GUID: gpt.NewGUID(), Offset: off, Size: 16 * mib})
		put(t, d, off, fill[name])
	}
	head, tail, err := gpt.Encode(d.Size, sector, gpt.Table{DiskGUID: gpt.NewGUID(), Partitions: parts})
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, 0, head)
	put(t, d, d.Size-int64(len(tail)), tail)
}

func talosDisk(t *testing.T, d looptest.Device, sector int) {
	meta := []byte{0x5a, 0x4b, 0x3c, 0x2d}
	xfs := append([]byte("XFSB"), make([]byte, 508)...)
	copy(xfs[0x6c:], "STATE")
	table(t, d, sector, map[string][]byte{"META": meta, "STATE": xfs}, "EFI", "META", "STATE", "EPHEMERAL")
}

// md is a version 1 superblock.
func md(set string) []byte {
	b := make([]byte, 256)
	copy(b, "\xfc\x4e\x2b\xa9")
	binary.LittleEndian.PutUint32(b[4:], 1)
	copy(b[16:32], set)
	copy(b[32:64], "rescue:0")
	return b
}

// md090 is a version 0.90 superblock.
func md090(set string) []byte {
	b := make([]byte, 4096)
	copy(b, "\xfc\x4e\x2b\xa9")
	binary.LittleEndian.PutUint32(b[8:], 90)
	copy(b[20:24], set)
	copy(b[52:64], set)
	return b
}

// layouts are what a disk can hold before disk-prep, and signatures that an
// inventory must see in it.
func layouts(sector int) map[string]struct {
	fill func(t *testing.T, d looptest.Device)
	sees []string
} {
	type layout = struct {
		fill func(t *testing.T, d looptest.Device)
		sees []string
	}
	all := map[string]layout{
		"zeros":     {func(*testing.T, looptest.Device) {}, nil},
		"old talos": {func(t *testing.T, d looptest.Device) { talosDisk(t, d, sector) }, []string{"gpt", "talosmeta", "xfs"}},
		"garbage": {func(t *testing.T, d looptest.Device) {
			put(t, d, 0, bytes.Repeat([]byte{0xa5}, 3*mib))
			put(t, d, d.Size-3*mib, bytes.Repeat([]byte{0x5a}, 3*mib))
		}, nil},
		"backup table only": {func(t *testing.T, d looptest.Device) {
			talosDisk(t, d, sector)
			put(t, d, 0, make([]byte, 64<<10))
		}, []string{"gpt", "xfs"}},
		"ext4":       {func(t *testing.T, d looptest.Device) { looptest.Tool(t, "mkfs.ext4", "-q", "-F", d.Path) }, []string{"ext4"}},
		"xfs":        {func(t *testing.T, d looptest.Device) { looptest.Tool(t, "mkfs.xfs", "-q", "-f", d.Path) }, []string{"xfs"}},
		"swap":       {func(t *testing.T, d looptest.Device) { looptest.Tool(t, "mkswap", d.Path) }, []string{"swap"}},
		"md 0.90":    {func(t *testing.T, d looptest.Device) { put(t, d, d.Size&^65535-65536, md090("abcd")) }, []string{"linux_raid_member"}},
		"md 1.0":     {func(t *testing.T, d looptest.Device) { put(t, d, (d.Size/512-16)&^7*512, md("0123456789abcdef")) }, []string{"linux_raid_member"}},
		"md 1.1":     {func(t *testing.T, d looptest.Device) { put(t, d, 0, md("0123456789abcdef")) }, []string{"linux_raid_member"}},
		"md 1.2":     {func(t *testing.T, d looptest.Device) { put(t, d, 4096, md("0123456789abcdef")) }, []string{"linux_raid_member"}},
		"luks":       {func(t *testing.T, d looptest.Device) { put(t, d, 0, []byte("LUKS\xba\xbe")) }, []string{"crypto_LUKS"}},
		"luks2 rest": {func(t *testing.T, d looptest.Device) { put(t, d, 4*mib, []byte("SKUL\xba\xbe")) }, []string{"crypto_LUKS"}},
		"zfs": {func(t *testing.T, d looptest.Device) {
			put(t, d, d.Size-256<<10+128<<10+3*1024, []byte("\x0c\xb1\xba\x00\x00\x00\x00\x00"))
		}, []string{"zfs_member"}},
		"ex-member below a filesystem": {func(t *testing.T, d looptest.Device) {
			looptest.Tool(t, "mkfs.ext4", "-q", "-F", d.Path)
			put(t, d, (d.Size/512-16)&^7*512, md("0123456789abcdef"))
		}, []string{"ext4", "linux_raid_member"}},
		"members in partitions": {func(t *testing.T, d looptest.Device) {
			table(t, d, sector, nil, "boot", "root")
			put(t, d, mib+4096, md("0123456789abcdef"))
			put(t, d, (1+16+16)*mib-8192, md("fedcba9876543210"))
		}, []string{"gpt", "linux_raid_member"}},
		"lvm": {func(t *testing.T, d looptest.Device) {
			only := `devices { filter = [ "a|` + d.Path + `$|", "r|.*|" ] use_devicesfile = 0 }`
			looptest.Tool(t, "lvm", "pvcreate", "--config", only, "-ff", "-y", d.Path)
			looptest.Tool(t, "lvm", "vgcreate", "--config", only, "vg-"+d.Serial, d.Path)
		}, []string{"LVM2_member"}},
	}
	if sector == 512 {
		all["dos with logical partitions"] = layout{func(t *testing.T, d looptest.Device) {
			looptest.Tool(t, "sh", "-c", "printf 'label: dos\n,16M\n,,E\n,16M\n,32M\n' | sfdisk --quiet --no-reread --no-tell-kernel "+d.Path)
			out := looptest.Tool(t, "sh", "-c", "sfdisk -d "+d.Path+" | sed -n 's/.*start= *\\([0-9]*\\).*/\\1/p' | tail -1")
			var last int64
			for _, c := range out {
				last = last*10 + int64(c-'0')
			}
			put(t, d, last*512, []byte("XFSB"))
		}, []string{"dos", "xfs"}}
	}
	return all
}

func types(inv api.Inventory, serial string) []string {
	var out []string
	for _, d := range inv.Disks {
		if d.Serial != serial {
			continue
		}
		for _, s := range d.Signatures {
			out = append(out, s.Type)
		}
		for _, p := range d.Parts {
			for _, s := range p.Signatures {
				out = append(out, s.Type)
			}
		}
	}
	return out
}
