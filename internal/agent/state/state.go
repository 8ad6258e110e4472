//go:generate go run ./template template/state.zst

// Package state makes the filesystem of Talos's STATE partition with a machine
// config in it, without mkfs and without a mount: a rescue system may have
// neither for XFS.
//
// The filesystem is a template that mkfs.xfs made at build time (see the folder
// template). It holds one file of a fixed extent, config.yaml, mode 0600. A
// config is filled into the extent and the file's inode gets its length. XFS
// keeps no checksum of file data; the inode's is made anew.
package state

import (
	"bytes"
	_ "embed" // the template
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/fault"
)

// What the template holds.
const (
	// Label is the name by which Talos finds the partition.
	Label = "STATE"
	// Size is the partition's size in bytes. mkfs.xfs makes nothing below
	// 300 MiB; Talos 1.13 was seen to take 320 MiB as its STATE.
	Size = 320 << 20
	// Capacity is the longest machine config, in bytes.
	Capacity = 512 << 10

	// BlockSize is the filesystem's block size and its sector size, in bytes:
	// it can be mounted on disks with sectors of 512 bytes and of 4096.
	BlockSize = 4096
	// File is the name of the config's file in the root directory.
	File = "config.yaml"
)

//go:embed template/state.zst
var template []byte //nolint:gochecknoglobals // go:embed needs a variable; nothing writes to it

// Type is the partition type that mkfs-made STATE partitions have: Linux
// filesystem data, 0FC63DAF-8483-4772-8E79-3D69D8477DE4.
func Type() gpt.GUID {
	return gpt.GUID{0xAF, 0x3D, 0xC6, 0x0F, 0x83, 0x84, 0x72, 0x47, 0x8E, 0x79, 0x3D, 0x69, 0xD8, 0x47, 0x7D, 0xE4}
}

// Filesystem is a filesystem with a config in it: Size bytes that are zeros
// for the most part.
type Filesystem struct {
	blocks map[int64][]byte // by number
}

// New makes the filesystem that holds a config. An empty config and one of
// more than Capacity bytes are NeedsOperator; no error quotes it.
func New(config []byte) (*Filesystem, error) {
	switch {
	case len(config) == 0:
		return nil, fault.Operator("render the config again", "the machine config for STATE is empty")
	case len(config) > Capacity:
		return nil, fault.Operator("make it smaller, or use `delivery: maintenance`",
			"the machine config has %d bytes, and STATE is made for at most %d", len(config), Capacity)
	}
	f, err := load(template)
	if err == nil {
		err = f.fill(config)
	}
	if err != nil {
		return nil, fault.Operator("build the agent again", "the agent's template of STATE is damaged: %w", err)
	}
	return f, nil
}

// load unpacks a template: records of a block's number (8 bytes, big-endian)
// and its content, for each block that is not zeros, compressed with zstd.
func load(packed []byte) (*Filesystem, error) {
	d, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f := &Filesystem{blocks: map[int64][]byte{}}
	for {
		record := make([]byte, 8+BlockSize)
		if _, err := io.ReadFull(d, record); err == io.EOF {
			return f, nil
		} else if err != nil {
			return nil, err
		}
		number := binary.BigEndian.Uint64(record)
		if number >= Size/BlockSize {
			return nil, fmt.Errorf("block %d lies behind its end", number)
		}
		f.blocks[int64(number)] = record[8:]
	}
}

// fill writes the config into the file's extent and its length into the inode.
func (f *Filesystem) fill(config []byte) error {
	v, err := open(f)
	if err != nil {
		return err
	}
	file, err := v.config()
	if err != nil {
		return err
	}
	if len(file.extents) != 1 || file.extents[0].length != Capacity {
		return fmt.Errorf("%s does not have one extent of %d bytes", File, Capacity)
	}
	f.write(config, file.extents[0].start)
	file.setSize(int64(len(config)))
	f.write(file.raw, file.offset)
	return nil
}

// write changes what lies at off.
func (f *Filesystem) write(p []byte, off int64) {
	for len(p) > 0 {
		number, in := off/BlockSize, off%BlockSize
		if f.blocks[number] == nil {
			f.blocks[number] = make([]byte, BlockSize)
		}
		n := copy(f.blocks[number][in:], p)
		p, off = p[n:], off+int64(n)
	}
}

// ReadAt reads the filesystem as it belongs on the partition.
func (f *Filesystem) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= Size {
		return 0, io.EOF
	}
	total := int(min(int64(len(p)), Size-off))
	for n := 0; n < total; {
		at := off + int64(n)
		part := p[n:min(total, n+int(BlockSize-at%BlockSize))]
		if block := f.blocks[at/BlockSize]; block != nil {
			copy(part, block[at%BlockSize:])
		} else {
			clear(part)
		}
		n += len(part)
	}
	if total < len(p) {
		return total, io.EOF
	}
	return total, nil
}

// Blocks lists the numbers of the blocks that are not zeros, in order; each
// stands for BlockSize bytes.
func (f *Filesystem) Blocks() []int64 {
	var numbers []int64
	for n := range f.blocks {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}
