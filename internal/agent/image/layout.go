package image

import (
	"encoding/binary"
	"hash/crc32"
)

// Where a boot sector carries its signature and its partitions.
const (
	signatureOffset = 510
	bootSignature   = "\x55\xaa"
	mbrTable        = 446
	mbrEntry        = 16
	mbrProtective   = 0xEE
)

// Layout is what the start of a raw disk image says about all of it.
type Layout struct {
	GPT        bool
	SectorSize int   // bytes; 512 for an image without a GPT
	MinSize    int64 // bytes up to the end of what its partition table speaks of
}

// ParseLayout reads the boot sector and the partition table's header at the
// start of a raw image. An image without a partition table is ErrNotImage, one
// with a broken GPT header is ErrCorrupt. The head need not be longer than
// two sectors of 4096 bytes.
func ParseLayout(head []byte) (Layout, error) {
	if !hasAt(head, signatureOffset, bootSignature) {
		return Layout{}, notImage("%s", describe(head))
	}
	for _, sector := range []int{512, 4096} {
		if hasAt(head, sector, "EFI PART") {
			return gptLayout(head[sector:], sector)
		}
	}
	return mbrLayout(head[mbrTable:signatureOffset])
}

// gptLayout checks a GPT header (UEFI specification 2.10, table 5.5). The
// backup header's sector is the last one that the table speaks of.
func gptLayout(header []byte, sector int) (Layout, error) {
	const least = 92
	if len(header) < least {
		return Layout{}, corrupt("it ends within its partition table")
	}
	size := int64(binary.LittleEndian.Uint32(header[12:]))
	if size < least || size > int64(min(len(header), sector)) {
		return Layout{}, corrupt("its GPT header says that it is %d bytes long", size)
	}
	sum := binary.LittleEndian.Uint32(header[16:])
	own := append([]byte(nil), header[:size]...)
	clear(own[16:20])
	if crc32.ChecksumIEEE(own) != sum {
		return Layout{}, corrupt("its GPT header has a wrong checksum")
	}
	backup := binary.LittleEndian.Uint64(header[32:])
	if backup < 2 || backup >= 1<<50 {
		return Layout{}, corrupt("its GPT header puts the backup header in sector %d", backup)
	}
	return Layout{GPT: true, SectorSize: sector, MinSize: int64(backup+1) * int64(sector)}, nil
}

// mbrLayout reads the four entries of a boot sector.
func mbrLayout(table []byte) (Layout, error) {
	l := Layout{SectorSize: 512}
	for ; len(table) >= mbrEntry; table = table[mbrEntry:] {
		status, kind := table[0], table[4]
		start := int64(binary.LittleEndian.Uint32(table[8:]))
		length := int64(binary.LittleEndian.Uint32(table[12:]))
		if kind == mbrProtective {
			return Layout{}, notImage("it has a protective MBR and no GPT header behind it")
		}
		if kind != 0 && status&0x7f == 0 && start > 0 && length > 0 {
			l.MinSize = max(l.MinSize, (start+length)*512)
		}
	}
	if l.MinSize == 0 {
		return Layout{}, notImage("it has a boot signature and no partition table")
	}
	return l, nil
}
