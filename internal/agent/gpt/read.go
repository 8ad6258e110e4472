package gpt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"unicode/utf16"
)

// Bounds of what is read from a disk that may hold anything.
const (
	maxEntrySize  = 4096
	maxEntryBytes = 1 << 20
)

// Parse reads the table of a disk of size bytes: the primary one, or the
// backup in the last sector where the primary is not valid. Checksums are
// checked; entries that reach past the disk are left out. Errors are ErrNone,
// ErrDamaged, ErrGeometry, or the reader's.
func Parse(r io.ReaderAt, size int64, sectorSize int) (*Table, error) {
	g, err := newGeometry(size, sectorSize)
	if err != nil {
		return nil, err
	}
	primary, err := g.read(r, headerLBA)
	if err == nil {
		return primary, nil
	}
	if !errors.Is(err, ErrNone) && !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	backup, backupErr := g.read(r, g.backupLBA())
	if backupErr == nil {
		backup.Backup = true
		return backup, nil
	}
	if errors.Is(err, ErrNone) {
		err = backupErr
	}
	return nil, err
}

// CheckBlank says what keeps a disk from holding what Blank makes: a
// protective MBR, and both copies of one table without partitions.
func CheckBlank(r io.ReaderAt, size int64, sectorSize int) error {
	g, err := newGeometry(size, sectorSize)
	if err != nil {
		return err
	}
	mbr := make([]byte, 512)
	if err := readFull(r, mbr, 0); err != nil {
		return err
	}
	if mbr[510] != 0x55 || mbr[511] != 0xAA || mbr[446+4] != 0xEE {
		return fmt.Errorf("%w: no protective MBR", ErrNone)
	}
	primary, err := g.read(r, headerLBA)
	if err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	backup, err := g.read(r, g.backupLBA())
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if n := len(primary.Partitions) + len(backup.Partitions); n > 0 {
		return fmt.Errorf("%w: not blank, %d partitions in its two copies", ErrDamaged, n)
	}
	if primary.DiskGUID != backup.DiskGUID {
		return fmt.Errorf("%w: its two copies have different disk GUIDs", ErrDamaged)
	}
	return nil
}

// header is what of a GPT header decides how the entries are read.
type header struct {
	disk       GUID
	entriesLBA uint64
	count      uint32
	size       uint32
	crc        uint32
}

func (g geometry) read(r io.ReaderAt, lba int64) (*Table, error) {
	h, err := g.readHeader(r, lba)
	if err != nil {
		return nil, err
	}
	array := make([]byte, int64(h.count)*int64(h.size))
	start := int64(h.entriesLBA) * g.sector
	if start+int64(len(array)) > g.sectors*g.sector {
		return nil, fmt.Errorf("%w: the entries lie past the end of the disk", ErrDamaged)
	}
	if err := readFull(r, array, start); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(array) != h.crc {
		return nil, fmt.Errorf("%w: wrong checksum of the entries", ErrDamaged)
	}
	t := &Table{DiskGUID: h.disk}
	for i := range int(h.count) {
		if p, ok := g.partition(i+1, array[i*int(h.size):][:entrySize]); ok {
			t.Partitions = append(t.Partitions, p)
		}
	}
	return t, nil
}

func (g geometry) readHeader(r io.ReaderAt, lba int64) (header, error) {
	b := make([]byte, g.sector)
	if err := readFull(r, b, lba*g.sector); err != nil {
		return header{}, err
	}
	if string(b[:8]) != "EFI PART" {
		return header{}, ErrNone
	}
	size := binary.LittleEndian.Uint32(b[12:])
	if size < headerSize || int64(size) > g.sector {
		return header{}, fmt.Errorf("%w: a header of %d bytes", ErrDamaged, size)
	}
	sum := binary.LittleEndian.Uint32(b[16:])
	clear(b[16:20])
	if crc32.ChecksumIEEE(b[:size]) != sum {
		return header{}, fmt.Errorf("%w: wrong checksum of the header", ErrDamaged)
	}
	if self := binary.LittleEndian.Uint64(b[24:]); self != uint64(lba) {
		return header{}, fmt.Errorf("%w: the header in sector %d says that it belongs in sector %d", ErrDamaged, lba, self)
	}
	h := header{
		disk:       GUID(b[56:72]),
		entriesLBA: binary.LittleEndian.Uint64(b[72:]),
		count:      binary.LittleEndian.Uint32(b[80:]),
		size:       binary.LittleEndian.Uint32(b[84:]),
		crc:        binary.LittleEndian.Uint32(b[88:]),
	}
	if h.size < entrySize || h.size > maxEntrySize || h.size%entrySize != 0 ||
		uint64(h.count)*uint64(h.size) > maxEntryBytes || h.entriesLBA >= uint64(g.sectors) {
		return header{}, fmt.Errorf("%w: %d entries of %d bytes in sector %d", ErrDamaged, h.count, h.size, h.entriesLBA)
	}
	return h, nil
}

// partition decodes an entry; ok is false for an unused one and for one that
// does not lie on the disk.
func (g geometry) partition(number int, e []byte) (p Partition, ok bool) {
	p = Partition{Number: number, Type: GUID(e[:16]), GUID: GUID(e[16:32])}
	first, last := binary.LittleEndian.Uint64(e[32:]), binary.LittleEndian.Uint64(e[40:])
	if p.Type == (GUID{}) || first > last || last >= uint64(g.sectors) {
		return Partition{}, false
	}
	p.Offset = int64(first) * g.sector
	p.Size = int64(last-first+1) * g.sector
	p.Attributes = binary.LittleEndian.Uint64(e[48:])
	p.Name = name(e[56:entrySize])
	return p, true
}

func name(b []byte) string {
	units := make([]uint16, 0, nameUnits)
	for i := 0; i+1 < len(b); i += 2 {
		u := binary.LittleEndian.Uint16(b[i:])
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}

// readFull reads all of p; io.EOF behind the last byte is no error.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read of %d bytes at %d: %w", len(p), off, err)
}
