package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ErrNoConfig says that a partition holds no filesystem of the kind that this
// package makes, or one without a config.
var ErrNoConfig = errors.New("no machine config")

// Offsets in bytes, from "XFS Filesystem Structure" (xfs-documentation,
// chapters 6.1 "Superblocks", 12 "On-disk Inode", 13.1 "Short Form Directories"
// and 14.1 "Extent List"); all numbers but checksums are big-endian.
const (
	superMagic    = "XFSB"
	superSize     = 512
	superBlock    = 4
	superRoot     = 56
	superAGBlocks = 84
	superInode    = 104
	superInoLog   = 123
	superAGLog    = 124

	inodeMagic    = "IN"
	inodeMode     = 2
	inodeVersion  = 4
	inodeFormat   = 5
	inodeSize     = 56
	inodeExtents  = 76
	inodeCRC      = 100
	inodeCore     = 176
	formatLocal   = 1
	formatExtents = 2
	modeType      = 0xF000
	modeRegular   = 0x8000
	modeDirectory = 0x4000
)

// volume is an XFS filesystem of version 5, for as much as it takes to find a
// file in a small root directory.
type volume struct {
	r        io.ReaderAt
	block    int64 // bytes
	inode    int64 // bytes
	agBlocks int64
	agLog    uint
	inoLog   uint // inodes a block
	root     uint64
}

// extent is where a piece of a file lies, in bytes.
type extent struct{ start, length int64 }

// node is an inode.
type node struct {
	raw     []byte
	offset  int64 // of the inode, bytes
	extents []extent
}

// Config reads the machine config out of a STATE filesystem. A partition that
// holds none is ErrNoConfig.
func Config(r io.ReaderAt) ([]byte, error) {
	v, err := open(r)
	if err != nil {
		return nil, err
	}
	file, err := v.config()
	if err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint64(file.raw[inodeSize:]))
	if size <= 0 || size > Capacity {
		return nil, fmt.Errorf("%w: %s has %d bytes", ErrNoConfig, File, size)
	}
	config := make([]byte, 0, size)
	for _, e := range file.extents {
		part := make([]byte, min(e.length, size-int64(len(config))))
		if _, err := r.ReadAt(part, e.start); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		config = append(config, part...)
	}
	if int64(len(config)) != size {
		return nil, fmt.Errorf("%w: %s is shorter than it says", ErrNoConfig, File)
	}
	return config, nil
}

func open(r io.ReaderAt) (*volume, error) {
	b := make([]byte, superSize)
	if _, err := r.ReadAt(b, 0); err != nil {
		return nil, err
	}
	be := binary.BigEndian
	v := &volume{
		r: r, block: int64(be.Uint32(b[superBlock:])), inode: int64(be.Uint16(b[superInode:])),
		agBlocks: int64(be.Uint32(b[superAGBlocks:])), agLog: uint(b[superAGLog]), inoLog: uint(b[superInoLog]),
		root: be.Uint64(b[superRoot:]),
	}
	if string(b[:4]) != superMagic || v.block != BlockSize || v.inode < superSize || v.inode > BlockSize || v.agLog > 31 || v.inoLog > 8 {
		return nil, fmt.Errorf("%w: no filesystem of the expected kind", ErrNoConfig)
	}
	return v, nil
}

// config finds the config's file.
func (v *volume) config() (*node, error) {
	root, err := v.read(v.root)
	if err != nil {
		return nil, err
	}
	if root.mode() != modeDirectory || root.raw[inodeFormat] != formatLocal {
		return nil, fmt.Errorf("%w: the root directory is not a small one", ErrNoConfig)
	}
	number, ok := root.lookup(File)
	if !ok {
		return nil, fmt.Errorf("%w: there is no file %s", ErrNoConfig, File)
	}
	file, err := v.read(number)
	if err != nil {
		return nil, err
	}
	if file.mode() != modeRegular || file.raw[inodeFormat] != formatExtents {
		return nil, fmt.Errorf("%w: %s is not a plain file", ErrNoConfig, File)
	}
	return file, v.loadExtents(file)
}

// read reads an inode and checks its checksum.
func (v *volume) read(number uint64) (*node, error) {
	ag, in := int64(number>>(v.agLog+v.inoLog)), int64(number&(1<<(v.agLog+v.inoLog)-1))
	block := ag*v.agBlocks + in>>v.inoLog
	n := &node{raw: make([]byte, v.inode), offset: block*v.block + (in&(1<<v.inoLog-1))*v.inode}
	if n.offset < 0 || n.offset > Size {
		return nil, fmt.Errorf("%w: inode %d lies elsewhere", ErrNoConfig, number)
	}
	if _, err := v.r.ReadAt(n.raw, n.offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(n.raw[:2]) != inodeMagic || n.raw[inodeVersion] != 3 || n.checksum() != binary.LittleEndian.Uint32(n.raw[inodeCRC:]) {
		return nil, fmt.Errorf("%w: inode %d is damaged", ErrNoConfig, number)
	}
	return n, nil
}

func (n *node) mode() uint16 { return binary.BigEndian.Uint16(n.raw[inodeMode:]) & modeType }

// checksum is CRC-32C over the inode with its own field zero.
func (n *node) checksum() uint32 {
	raw := append([]byte(nil), n.raw...)
	clear(raw[inodeCRC : inodeCRC+4])
	return crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli))
}

// setSize changes the file's length.
func (n *node) setSize(size int64) {
	binary.BigEndian.PutUint64(n.raw[inodeSize:], uint64(size))
	binary.LittleEndian.PutUint32(n.raw[inodeCRC:], n.checksum())
}

// lookup finds a name in a directory that lies in its inode: a head of count,
// count of 8-byte numbers and parent, then entries of length, offset, name,
// file type and inode number.
func (n *node) lookup(name string) (uint64, bool) {
	d := n.raw[inodeCore:]
	count, width := int(d[0]), 4
	if d[1] > 0 {
		count, width = int(d[1]), 8
	}
	for at := 2 + width; count > 0; count-- {
		if at+3 > len(d) {
			return 0, false
		}
		length := int(d[at])
		end := at + 3 + length + 1 + width
		if end > len(d) {
			return 0, false
		}
		number := uint64(binary.BigEndian.Uint32(d[end-4:]))
		if width == 8 {
			number = binary.BigEndian.Uint64(d[end-8:])
		}
		if string(d[at+3:at+3+length]) == name {
			return number, true
		}
		at = end
	}
	return 0, false
}

// loadExtents decodes the list of extents that lies in an inode: one bit
// "unwritten", 54 of file offset, 52 of block, 21 of length.
func (v *volume) loadExtents(n *node) error {
	count := int64(binary.BigEndian.Uint32(n.raw[inodeExtents:]))
	if inodeCore+16*count > int64(len(n.raw)) {
		return fmt.Errorf("%w: %s has %d extents", ErrNoConfig, File, count)
	}
	next := int64(0)
	for e := n.raw[inodeCore : inodeCore+16*count]; len(e) > 0; e = e[16:] {
		hi, lo := binary.BigEndian.Uint64(e), binary.BigEndian.Uint64(e[8:])
		offset, start, length := int64(hi>>9&(1<<54-1)), hi&(1<<9-1)<<43|lo>>21, int64(lo&(1<<21-1))
		block := int64(start>>v.agLog)*v.agBlocks + int64(start&(1<<v.agLog-1))
		if hi>>63 != 0 || offset != next || block < 0 || block+length > Size/BlockSize {
			return fmt.Errorf("%w: %s has holes", ErrNoConfig, File)
		}
		n.extents = append(n.extents, extent{block * v.block, length * v.block})
		next += length
	}
	return nil
}
