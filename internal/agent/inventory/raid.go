package inventory

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// mdMagic is 0xa92b4efc, little-endian.
const mdMagic = "\xfc\x4e\x2b\xa9"

// mdPlaces are where the four formats of md keep their superblock (kernel,
// drivers/md/md.c: super_90_load and super_1_load).
func mdPlaces(size int64) map[string]int64 {
	sectors := size / 512
	return map[string]int64{
		"0.90": size&^(64<<10-1) - 64<<10,
		"1.0":  (sectors - 16) &^ 7 * 512,
		"1.1":  0,
		"1.2":  4096,
	}
}

// md finds the superblocks of members and of disks that once were members.
func md(a *area) []api.Signature {
	var out []api.Signature
	places := mdPlaces(a.size)
	for _, format := range []string{"0.90", "1.0", "1.1", "1.2"} {
		off := places[format]
		super := a.at(off, 256)
		if super == nil || !bytes.HasPrefix(super, []byte(mdMagic)) {
			continue
		}
		s := api.Signature{Type: "linux_raid_member", Offset: uint64(off)}
		switch major := binary.LittleEndian.Uint32(super[4:]); {
		case format == "0.90" && major == 0:
			s.Set = hex.EncodeToString(append(bytes.Clone(super[20:24]), super[52:64]...))
		case format != "0.90" && major == 1:
			s.Set, s.Label = hex.EncodeToString(super[16:32]), printable(super[32:64])
		default:
			continue
		}
		out = append(out, s)
	}
	return out
}

// lvm finds a physical volume's label in the first four sectors, and the name
// and ID of its group in the metadata (LVM2, lib/format_text/layout.h).
func lvm(a *area) []api.Signature {
	for sector := range int64(4) {
		off := sector * 512
		if !a.has(off, "LABELONE") || !a.has(off+24, "LVM2 001") {
			continue
		}
		s := api.Signature{Type: "LVM2_member", Offset: uint64(off)}
		s.Label, s.Set = volumeGroup(a, off)
		return []api.Signature{s}
	}
	return nil
}

// volumeGroup follows the label to the first metadata area and its text,
// which starts with the group's name and ID.
func volumeGroup(a *area, label int64) (name, id string) {
	sector := a.at(label, 512)
	if sector == nil {
		return "", ""
	}
	area := metadataArea(sector)
	header := a.at(area, 512)
	if area == 0 || header == nil || !bytes.Equal(header[4:20], []byte(" LVM2 x[5A%r0N*>")) {
		return "", ""
	}
	text := a.at(area+int64(binary.LittleEndian.Uint64(header[40:])&(1<<40-1)), 256)
	name, rest, found := bytesCut(text, " {\n")
	if !found {
		return "", ""
	}
	_, rest, found = bytesCut([]byte(rest), "id = \"")
	if !found {
		return "", ""
	}
	id, _, _ = bytesCut([]byte(rest), "\"")
	return printable([]byte(name)), printable([]byte(id))
}

// metadataArea is the offset of the first metadata area: the label's header
// (at the offset in its bytes 20 to 23) lists data areas, a zero entry, and
// metadata areas, 16 bytes each.
func metadataArea(sector []byte) int64 {
	entry := int(binary.LittleEndian.Uint32(sector[20:])) + 40
	ended := false
	for ; entry > 0 && entry+16 <= len(sector); entry += 16 {
		offset := binary.LittleEndian.Uint64(sector[entry:])
		if ended {
			return int64(offset & (1<<40 - 1))
		}
		ended = offset == 0
	}
	return 0
}

func bytesCut(b []byte, sep string) (before, after string, found bool) {
	x, y, found := bytes.Cut(b, []byte(sep))
	return string(x), string(y), found
}
