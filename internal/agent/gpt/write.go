package gpt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"unicode/utf16"
)

// Blank makes a table without partitions and with a random disk GUID for a
// disk of diskSize bytes: head belongs at offset 0 (protective MBR with the
// boot signature 0x55AA, primary header, entries), tail at
// diskSize-len(tail) (entries, backup header). An error is ErrGeometry.
func Blank(diskSize int64, sectorSize int) (head, tail []byte, err error) {
	return Encode(diskSize, sectorSize, Table{DiskGUID: NewGUID()})
}

// Encode makes the bytes of a table for a disk of diskSize bytes, as Blank
// does. A partition that does not fit the disk is ErrGeometry.
func Encode(diskSize int64, sectorSize int, t Table) (head, tail []byte, err error) {
	g, err := newGeometry(diskSize, sectorSize)
	if err != nil {
		return nil, nil, err
	}
	array, err := g.entries(t.Partitions)
	if err != nil {
		return nil, nil, err
	}
	crc := crc32.ChecksumIEEE(array[:entrySize*entryCount])

	head = make([]byte, g.firstUsable()*g.sector)
	g.protectiveMBR(head)
	copy(head[headerLBA*g.sector:], g.header(t.DiskGUID, headerLBA, g.backupLBA(), firstEntries, crc))
	copy(head[firstEntries*g.sector:], array)

	tail = make([]byte, (g.array+1)*g.sector)
	copy(tail, array)
	copy(tail[g.array*g.sector:], g.header(t.DiskGUID, g.backupLBA(), headerLBA, g.lastUsable()+1, crc))
	return head, tail, nil
}

// protectiveMBR covers the disk with one partition of type 0xEE (UEFI
// specification, table 5.4), so that tools and firmware that know no GPT
// see a disk in use, and one that has a boot signature.
func (g geometry) protectiveMBR(sector []byte) {
	entry := sector[446:462]
	copy(entry[1:4], []byte{0x00, 0x02, 0x00}) // CHS of LBA 1
	entry[4] = 0xEE
	copy(entry[5:8], []byte{0xFF, 0xFF, 0xFF})
	binary.LittleEndian.PutUint32(entry[8:], headerLBA)
	binary.LittleEndian.PutUint32(entry[12:], uint32(min(g.sectors-1, math.MaxUint32)))
	sector[510], sector[511] = 0x55, 0xAA
}

func (g geometry) header(disk GUID, self, other, entries int64, entriesCRC uint32) []byte {
	h := make([]byte, headerSize)
	copy(h, "EFI PART")
	binary.LittleEndian.PutUint32(h[8:], 0x00010000) // revision 1.0
	binary.LittleEndian.PutUint32(h[12:], headerSize)
	binary.LittleEndian.PutUint64(h[24:], uint64(self))
	binary.LittleEndian.PutUint64(h[32:], uint64(other))
	binary.LittleEndian.PutUint64(h[40:], uint64(g.firstUsable()))
	binary.LittleEndian.PutUint64(h[48:], uint64(g.lastUsable()))
	copy(h[56:], disk[:])
	binary.LittleEndian.PutUint64(h[72:], uint64(entries))
	binary.LittleEndian.PutUint32(h[80:], entryCount)
	binary.LittleEndian.PutUint32(h[84:], entrySize)
	binary.LittleEndian.PutUint32(h[88:], entriesCRC)
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h))
	return h
}

func (g geometry) entries(parts []Partition) ([]byte, error) {
	array := make([]byte, g.array*g.sector)
	for _, p := range parts {
		if p.Number < 1 || p.Number > entryCount {
			return nil, fmt.Errorf("%w: partition number %d is not from 1 to %d", ErrGeometry, p.Number, entryCount)
		}
		first, last := p.Offset/g.sector, (p.Offset+p.Size)/g.sector-1
		if p.Offset%g.sector != 0 || p.Size <= 0 || p.Size%g.sector != 0 || first < g.firstUsable() || last > g.lastUsable() {
			return nil, fmt.Errorf("%w: partition %d (offset %d, size %d) does not fit", ErrGeometry, p.Number, p.Offset, p.Size)
		}
		units := utf16.Encode([]rune(p.Name))
		if len(units) > nameUnits {
			return nil, fmt.Errorf("%w: partition name %q is longer than %d UTF-16 units", ErrGeometry, p.Name, nameUnits)
		}
		e := array[(p.Number-1)*entrySize:][:entrySize]
		copy(e, p.Type[:])
		copy(e[16:], p.GUID[:])
		binary.LittleEndian.PutUint64(e[32:], uint64(first))
		binary.LittleEndian.PutUint64(e[40:], uint64(last))
		binary.LittleEndian.PutUint64(e[48:], p.Attributes)
		for i, u := range units {
			binary.LittleEndian.PutUint16(e[56+2*i:], u)
		}
	}
	return array, nil
}
