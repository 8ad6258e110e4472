// Package layout writes and reads the partition tables of the lab's disks
// with the code that Talos itself uses for them.
package layout

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/siderolabs/go-blockdevice/v2/partitioning/gpt"
)

// SectorSize is the logical sector size of every disk of the lab, in bytes.
const SectorSize = 512

// MiB is 2^20 bytes.
const MiB = 1 << 20

// The partition names that Talos looks for.
const (
	EFI       = "EFI"
	BIOS      = "BIOS"
	Boot      = "BOOT"
	Meta      = "META"
	State     = "STATE"
	Ephemeral = "EPHEMERAL"
)

// Partition types, as the UEFI specification and Talos name them.
const (
	TypeEFI   = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
	TypeBIOS  = "21686148-6449-6E6F-744E-656564454649"
	TypeLinux = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
	TypeRAID  = "A19D880F-05FC-4D3B-A006-743F0F84911E"
)

// File is a disk or an image that can be read and written anywhere.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// Part is a partition to be created or one that was found.
type Part struct {
	Name   string
	Type   string // GUID
	Offset int64  // bytes; ignored when a partition is created
	Size   int64  // bytes; 0 takes what is left
}

// Create writes a new partition table; parts are laid out in order, each
// aligned to 1 MiB. GUIDs come from the seed, so that equal seeds make equal
// tables, as every copy of a Talos image has equal GUIDs.
func Create(f File, size int64, seed string, parts []Part) error {
	table, err := gpt.New(device{f, size}, gpt.WithDiskGUID(guid(seed, 0)))
	if err != nil {
		return fmt.Errorf("cannot make a partition table on %d bytes: %w", size, err)
	}
	for i, p := range parts {
		if err := allocate(table, p, guid(seed, i+1)); err != nil {
			return err
		}
	}
	return write(table)
}

// Add appends a partition to the table that is there, and moves the backup
// table to the end of the disk, as Talos does on a disk that is larger than
// its image.
func Add(f File, size int64, p Part) (Part, error) {
	table, err := gpt.Read(device{f, size})
	if err != nil {
		return Part{}, fmt.Errorf("cannot read the partition table: %w", err)
	}
	if err := allocate(table, p, uuid.New()); err != nil {
		return Part{}, err
	}
	if err := write(table); err != nil {
		return Part{}, err
	}
	found, _ := Find(Read(f, size), p.Name)
	return found, nil
}

// Read lists the partitions of a disk in table order; a disk without a
// readable GPT has none.
func Read(f File, size int64) []Part {
	table, err := gpt.Read(device{f, size})
	if err != nil {
		return nil
	}
	var parts []Part
	for _, p := range table.Partitions() {
		if p == nil {
			continue
		}
		parts = append(parts, Part{
			Name:   p.Name,
			Type:   p.TypeGUID.String(),
			Offset: int64(p.FirstLBA) * SectorSize,
			Size:   int64(p.LastLBA-p.FirstLBA+1) * SectorSize,
		})
	}
	return parts
}

// Find gives the first partition of that name.
func Find(parts []Part, name string) (Part, bool) {
	for _, p := range parts {
		if p.Name == name {
			return p, true
		}
	}
	return Part{}, false
}

// HasBootSignature reports whether sector 0 ends in 0x55AA.
func HasBootSignature(f io.ReaderAt) bool {
	var sig [2]byte
	if _, err := f.ReadAt(sig[:], SectorSize-2); err != nil {
		return false
	}
	return sig == [2]byte{0x55, 0xAA}
}

func allocate(table *gpt.Table, p Part, id uuid.UUID) error {
	size := uint64(p.Size)
	if p.Size == 0 {
		size = table.LargestContiguousAllocatable()
	}
	kind, err := uuid.Parse(p.Type)
	if err != nil {
		return fmt.Errorf("partition %s has no valid type: %w", p.Name, err)
	}
	if _, _, err := table.AllocatePartition(size, p.Name, kind, gpt.WithUniqueGUID(id)); err != nil {
		return fmt.Errorf("no room for partition %s of %d bytes: %w", p.Name, size, err)
	}
	return nil
}

func write(table *gpt.Table) error {
	if err := table.Write(); err != nil {
		return fmt.Errorf("cannot write the partition table: %w", err)
	}
	return nil
}

func guid(seed string, n int) uuid.UUID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(seed), uint32(n)))
	id, _ := uuid.FromBytes(sum[:16])
	id[6] = id[6]&0x0f | 0x40 // version 4, RFC 9562
	id[8] = id[8]&0x3f | 0x80
	return id
}

// device makes a File look like a block device without a kernel behind it.
type device struct {
	File
	size int64
}

func (d device) GetSectorSize() uint                             { return SectorSize }
func (d device) GetSize() uint64                                 { return uint64(d.size) }
func (d device) GetIOSize() (uint, error)                        { return SectorSize, nil }
func (d device) Sync() error                                     { return nil }
func (d device) GetKernelLastPartitionNum() (int, error)         { return 0, nil }
func (d device) KernelPartitionAdd(int, uint64, uint64) error    { return nil }
func (d device) KernelPartitionResize(int, uint64, uint64) error { return nil }
func (d device) KernelPartitionDelete(int) error                 { return nil }
