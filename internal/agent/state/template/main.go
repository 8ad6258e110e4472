// Command template makes state.zst, the filesystem that the agent fills a
// machine config into, with mkfs.xfs of xfsprogs. The same version of xfsprogs
// makes the same bytes; state.zst was made with 6.1.0 (Debian 12).
//
//	go generate ./internal/agent/state
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/ironlot/ironlot/internal/agent/state"
)

// uuid of every filesystem that is made of the template.
const uuid = "1701d107-5741-4e45-8000-000000000001"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: template FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "template:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	dir, err := os.MkdirTemp("", "state-template-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := format(dir)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := normalize(raw); err != nil {
		return err
	}
	packed, err := pack(raw)
	if err != nil {
		return err
	}
	return os.WriteFile(out, packed, 0o644) //nolint:gosec // it is checked in, and public
}

// format makes the filesystem. The file is filled with ones, so that it gets
// written blocks and no hole.
func format(dir string) (string, error) {
	image, config, proto := filepath.Join(dir, "state"), filepath.Join(dir, state.File), filepath.Join(dir, "proto")
	text := "ironlot\n0 0\nd--755 0 0\n" + state.File + " ---600 0 0 " + config + "\n$\n"
	err := errors.Join(
		os.WriteFile(config, bytes.Repeat([]byte{0xFF}, state.Capacity), 0o600),
		os.WriteFile(proto, []byte(text), 0o600),
		os.WriteFile(image, nil, 0o600),
		os.Truncate(image, state.Size),
	)
	if err != nil {
		return "", err
	}
	// Nothing newer than what Talos's own kernel has known for years.
	mkfs := exec.CommandContext(context.Background(), "mkfs.xfs", "-q", "-b", fmt.Sprint("size=", state.BlockSize), "-s", fmt.Sprint("size=", state.BlockSize),
		"-i", "size=512", "-m", "crc=1,finobt=1,rmapbt=0,reflink=0,bigtime=1,inobtcount=1,uuid="+uuid,
		"-L", state.Label, "-p", proto, image)
	if output, err := mkfs.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return image, nil
}

// Where mkfs.xfs puts the first 64 inodes, and where times and checksum lie in
// one (bytes; times are those of access, change, status and birth).
const (
	inodeSize  = 512
	inodeCount = 64
	inodeCRC   = 100
)

// normalize takes out what differs from one run to the next: the inodes'
// times, and the config's data, which has no checksum.
func normalize(raw []byte) error {
	be := binary.BigEndian
	perBlock, root := int64(1)<<raw[123], int64(be.Uint64(raw[56:]))
	first := root / perBlock * state.BlockSize
	for i := range int64(inodeCount) {
		inode := raw[first+i*inodeSize:][:inodeSize]
		if string(inode[:2]) != "IN" {
			return fmt.Errorf("there is no inode at byte %d", first+i*inodeSize)
		}
		for _, at := range []int{32, 40, 48, 144} {
			clear(inode[at : at+8])
		}
		clear(inode[inodeCRC : inodeCRC+4])
		sum := crc32.Checksum(inode, crc32.MakeTable(crc32.Castagnoli))
		binary.LittleEndian.PutUint32(inode[inodeCRC:], sum)
	}
	data := bytes.Index(raw, bytes.Repeat([]byte{0xFF}, state.Capacity))
	if data < 0 {
		return errors.New("the file does not lie in one piece")
	}
	clear(raw[data : data+state.Capacity])
	return nil
}

// pack keeps the blocks that are not zeros, each behind its number.
func pack(raw []byte) ([]byte, error) {
	var records bytes.Buffer
	zeros := make([]byte, state.BlockSize)
	for at := 0; at < len(raw); at += state.BlockSize {
		if block := raw[at : at+state.BlockSize]; !bytes.Equal(block, zeros) {
			records.Write(binary.BigEndian.AppendUint64(nil, uint64(at/state.BlockSize)))
			records.Write(block)
		}
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return enc.EncodeAll(records.Bytes(), nil), enc.Close()
}
