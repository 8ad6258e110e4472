package inventory

import (
	"encoding/binary"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// magic is a signature at a fixed place. Names and places are libblkid's
// (util-linux, libblkid/src/superblocks).
type magic struct {
	kind     string
	offset   int64 // from the start, or from the end when negative
	value    string
	labelAt  int64 // offset of a label, 0 for none
	labelLen int
}

func magics() []magic {
	return []magic{
		{kind: "xfs", value: "XFSB", labelAt: 0x6c, labelLen: 12},
		{kind: "btrfs", offset: 0x10040, value: "_BHRfS_M", labelAt: 0x1012b, labelLen: 256},
		{kind: "f2fs", offset: 0x400, value: "\x10\x20\xf5\xf2"},
		{kind: "reiserfs", offset: 0x10034, value: "ReIsEr"},
		{kind: "jfs", offset: 0x8000, value: "JFS1"},
		{kind: "iso9660", offset: 0x8001, value: "CD001", labelAt: 0x8028, labelLen: 32},
		{kind: "squashfs", value: "hsqs"},
		{kind: "exfat", offset: 3, value: "EXFAT   "},
		{kind: "ntfs", offset: 3, value: "NTFS    "},
		{kind: "vfat", offset: 0x52, value: "FAT32   ", labelAt: 0x47, labelLen: 11},
		{kind: "vfat", offset: 0x36, value: "FAT12   ", labelAt: 0x2b, labelLen: 11},
		{kind: "vfat", offset: 0x36, value: "FAT16   ", labelAt: 0x2b, labelLen: 11},
		{kind: "crypto_LUKS", value: "LUKS\xba\xbe"},
		{kind: "bcache", offset: 0x1018, value: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
		{kind: "stratis", offset: 0x204, value: "!Stra0tis\x86\xff\x02^"},
		{kind: "ceph_bluestore", value: "bluestore block device"},
		{kind: "talosmeta", value: "\x5a\x4b\x3c\x2d"},
		{kind: "isw_raid_member", offset: -1024, value: "Intel Raid ISM Cfg Sig. "},
		{kind: "ddf_raid_member", offset: -512, value: "\xde\x11\xde\x11"},
		{kind: "ddf_raid_member", offset: -131584, value: "\xde\x11\xde\x11"},
	}
}

// probe finds the signatures of a disk or partition, all of them: what lies
// below a newer one would come to light when that is gone.
func probe(a *area) []api.Signature {
	var out []api.Signature
	for _, m := range magics() {
		off := m.offset
		if off < 0 {
			off += a.size
		}
		if !a.has(off, m.value) {
			continue
		}
		s := api.Signature{Type: m.kind, Offset: uint64(off)}
		if m.labelAt > 0 {
			s.Label = a.text(m.labelAt, m.labelLen)
		}
		out = append(out, s)
	}
	for _, find := range []func(*area) []api.Signature{ext, swap, luks2, md, lvm, zfs} {
		out = append(out, find(a)...)
	}
	return out
}

// ext tells ext2, 3 and 4 apart by their features (kernel, fs/ext4/ext4.h).
func ext(a *area) []api.Signature {
	const super = 0x400
	if !a.has(super+0x38, "\x53\xef") {
		return nil
	}
	kind := "ext2"
	features := a.at(super+0x5c, 12)
	if features == nil {
		return nil
	}
	if binary.LittleEndian.Uint32(features)&0x4 != 0 { // has_journal
		kind = "ext3"
	}
	if binary.LittleEndian.Uint32(features[4:])&0x2c0 != 0 { // extents, 64bit, flex_bg
		kind = "ext4"
	}
	return []api.Signature{{Type: kind, Offset: super + 0x38, Label: a.text(super+0x78, 16)}}
}

// swap stands at the end of the first memory page, whatever its size was.
func swap(a *area) []api.Signature {
	for _, size := range []int64{4096, 8192, 16384, 32768, 65536} {
		for _, value := range []string{"SWAPSPACE2", "SWAP-SPACE"} {
			if a.has(size-10, value) {
				return []api.Signature{{Type: "swap", Offset: uint64(size - 10), Label: a.text(0x41c, 16)}}
			}
		}
		for _, value := range []string{"S1SUSPEND", "S2SUSPEND", "ULSUSPEND", "LINHIB0001"} {
			if a.has(size-10, value) {
				return []api.Signature{{Type: "swsuspend", Offset: uint64(size - 10)}}
			}
		}
	}
	return nil
}

// luks2 looks for the second headers, which outlive the first (LUKS2 on-disk
// format specification 1.1.3, section 2.2).
func luks2(a *area) []api.Signature {
	var out []api.Signature
	for off := int64(0x4000); off <= 0x400000; off *= 2 {
		if a.has(off, "SKUL\xba\xbe") {
			out = append(out, api.Signature{Type: "crypto_LUKS", Offset: uint64(off)})
		}
	}
	return out
}

// zfs looks for uberblocks in the rings of the four labels (OpenZFS on-disk
// format, section 1.3): one is enough for a label to count.
func zfs(a *area) []api.Signature {
	const label, ring, slots = 256 << 10, 128 << 10, 128
	end := a.size &^ (label - 1)
	var out []api.Signature
	for _, start := range []int64{0, label, end - 2*label, end - label} {
		for i := range int64(slots) {
			off := start + ring + i*1024
			if a.has(off, "\x0c\xb1\xba\x00\x00\x00\x00\x00") || a.has(off, "\x00\x00\x00\x00\x00\xba\xb1\x0c") {
				out = append(out, api.Signature{Type: "zfs_member", Offset: uint64(off)})
				break
			}
		}
	}
	return out
}
