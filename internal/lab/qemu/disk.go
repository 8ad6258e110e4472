package qemu

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ironlot/ironlot/internal/lab/layout"
)

// disk is a file that a guest takes for a disk.
type disk struct {
	spec     DiskSpec
	path     string
	readOnly bool
}

// read opens the disk's file for a look from outside.
func (d disk) read(look func(f *os.File) error) error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return look(f)
}

// hasBootSignature looks at sector 0.
func (d disk) hasBootSignature() bool {
	found := false
	err := d.read(func(f *os.File) error {
		found = layout.HasBootSignature(f)
		return nil
	})
	return err == nil && found
}

// hasSystem reports whether there are a boot loader in sector 0 and
// partitions.
func (d disk) hasSystem() bool {
	found := false
	err := d.read(func(f *os.File) error {
		var code [4]byte
		_, err := f.ReadAt(code[:], 0)
		found = code != [4]byte{} && len(layout.Read(f, d.spec.Size)) > 0
		return err
	})
	return err == nil && found
}

// hasPartition reports whether there is a partition of that name.
func (d disk) hasPartition(name string) bool {
	found := false
	err := d.read(func(f *os.File) error {
		_, found = layout.Find(layout.Read(f, d.spec.Size), name)
		return nil
	})
	return err == nil && found
}

// create makes an empty sparse file of the disk's size.
func (d disk) create() error {
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(d.spec.Size), f.Close())
}

// copySparse copies a file and leaves its holes.
func copySparse(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(dst.Truncate(info.Size()), copyData(dst, src, info.Size())); err != nil {
		return errors.Join(fmt.Errorf("copying %s failed: %w", from, err), dst.Close())
	}
	return dst.Close()
}

func copyData(dst, src *os.File, size int64) error {
	for off := int64(0); off < size; {
		start, err := unix.Seek(int(src.Fd()), off, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // only holes are left
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(int(src.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(dst, start), io.NewSectionReader(src, start, end-start)); err != nil {
			return err
		}
		off = end
	}
	return nil
}
