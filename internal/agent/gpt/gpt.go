// Package gpt reads and writes GUID partition tables (UEFI specification
// 2.10, chapter 5): the protective MBR, both headers and both entry arrays.
// It works on byte ranges only and knows nothing of devices.
package gpt

import (
	"crypto/rand"
	"errors"
	"fmt"
)

// Geometry of the tables that this package writes, from the UEFI
// specification: at least 16 KiB of entries of 128 bytes.
const (
	entrySize    = 128
	entryCount   = 128
	headerSize   = 92
	headerLBA    = 1
	firstEntries = 2
	nameUnits    = 36 // UTF-16 code units of a partition name
)

// What is wrong with a table that cannot be read.
var (
	// ErrNone says that there is no GPT header at either end of the disk.
	ErrNone = errors.New("no GUID partition table")
	// ErrDamaged says that there is a header, and neither copy is valid.
	ErrDamaged = errors.New("damaged GUID partition table")
	// ErrGeometry says that a disk of this size and sector size cannot hold
	// a table, or not this one.
	ErrGeometry = errors.New("unfit for a GUID partition table")
)

// GUID is a GUID as it is stored: the first three fields little-endian.
type GUID [16]byte

// String gives the usual form, such as C12A7328-F81F-11D2-BA4B-00A0C93EC93B.
func (g GUID) String() string {
	return fmt.Sprintf("%02X%02X%02X%02X-%02X%02X-%02X%02X-%X-%X",
		g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6], g[8:10], g[10:16])
}

// NewGUID makes a random GUID (RFC 9562, version 4).
func NewGUID() GUID {
	var g GUID
	_, _ = rand.Read(g[:]) // never fails
	g[7] = g[7]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return g
}

// Table is a partition table.
type Table struct {
	DiskGUID   GUID
	Partitions []Partition // in the order of their numbers
	Backup     bool        // read from the backup, the primary is not valid
}

// Partition is one entry of a table.
type Partition struct {
	Number     int // from 1
	Name       string
	Type       GUID
	GUID       GUID
	Offset     int64 // bytes from the start of the disk
	Size       int64 // bytes
	Attributes uint64
}

// geometry is where the parts of a table lie on a disk, in sectors.
type geometry struct {
	sector  int64 // bytes
	sectors int64 // of the disk
	array   int64 // of one entry array
}

func newGeometry(diskSize int64, sectorSize int) (geometry, error) {
	if sectorSize < 512 || sectorSize > 65536 || sectorSize&(sectorSize-1) != 0 {
		return geometry{}, fmt.Errorf("%w: sectors of %d bytes are not a power of two from 512 to 65536", ErrGeometry, sectorSize)
	}
	g := geometry{sector: int64(sectorSize)}
	g.sectors = diskSize / g.sector
	g.array = (entrySize*entryCount + g.sector - 1) / g.sector
	if diskSize < 0 || diskSize%g.sector != 0 {
		return geometry{}, fmt.Errorf("%w: %d bytes are no whole number of sectors of %d bytes", ErrGeometry, diskSize, sectorSize)
	}
	if g.sectors < 2*(g.array+1)+2 {
		return geometry{}, fmt.Errorf("%w: %d bytes are too few", ErrGeometry, diskSize)
	}
	return g, nil
}

func (g geometry) firstUsable() int64 { return firstEntries + g.array }
func (g geometry) lastUsable() int64  { return g.sectors - g.array - 2 }
func (g geometry) backupLBA() int64   { return g.sectors - 1 }
