//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ironlot/ironlot/internal/agent/host"
)

// align is what every device takes for direct transfers: both sector sizes
// divide it, and memory pages are as large.
const align = 4096

// disk is an open whole disk: once through the page cache, for transfers
// that are not aligned, and once past it.
type disk struct {
	name     string
	buffered *os.File
	direct   *os.File
	size     int64
	sector   int
	offloads bool // the device itself writes zeros
	discards bool
}

// OpenDisk implements host.Host. It never makes a file: what is opened must
// be the block device that the kernel names.
func (h *Host) OpenDisk(_ context.Context, name string, write bool) (host.Disk, error) {
	path, err := h.deviceFile(name)
	if err != nil {
		return nil, err
	}
	flags := unix.O_RDONLY
	if write {
		flags = unix.O_RDWR
	}
	d := &disk{
		name:     name,
		offloads: h.number("sys/block", name, "queue/write_zeroes_max_bytes") > 0,
		discards: h.number("sys/block", name, "queue/discard_max_bytes") > 0,
	}
	exclusive := 0
	if write {
		exclusive = unix.O_EXCL
	}
	if d.buffered, err = os.OpenFile(path, flags|exclusive, 0); err != nil {
		return nil, fmt.Errorf("open disk: %w", err)
	}
	if d.direct, err = os.OpenFile(path, flags|unix.O_DIRECT, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("open disk: %w", err), d.Close())
	}
	if err := d.describe(h.text("sys/class/block", name, "dev")); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// describe checks that this is the device of the kernel's number and reads
// its size and sectors.
func (d *disk) describe(number string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.buffered.Fd()), &st); err != nil {
		return fmt.Errorf("stat disk: %w", err)
	}
	got := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	if st.Mode&unix.S_IFMT != unix.S_IFBLK || got != number {
		return fmt.Errorf("%s is not the block device %s: %w", d.buffered.Name(), number, unix.ENOTBLK)
	}
	var size uint64
	if err := d.ioctl(unix.BLKGETSIZE64, unsafe.Pointer(&size)); err != nil {
		return err
	}
	var sector int32
	if err := d.ioctl(unix.BLKSSZGET, unsafe.Pointer(&sector)); err != nil {
		return err
	}
	d.size, d.sector = int64(size), int(sector)
	return nil
}

func (d *disk) ioctl(request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.buffered.Fd(), request, uintptr(arg)); errno != 0 {
		return fmt.Errorf("ioctl %#x of %s: %w", request, d.name, errno)
	}
	return nil
}

func (d *disk) Size() int64     { return d.size }
func (d *disk) SectorSize() int { return d.sector }

// ReadAt reads through the page cache.
func (d *disk) ReadAt(p []byte, off int64) (int, error) { return d.buffered.ReadAt(p, off) }

// WriteAt writes past the cache what is aligned, as is nearly all of an
// image; the kernel keeps the cache in step with it.
func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	if off%align != 0 || len(p)%align != 0 || !aligned(p) {
		return d.buffered.WriteAt(p, off)
	}
	return d.direct.WriteAt(p, off)
}

// ReadDirectAt implements host.Disk.
func (d *disk) ReadDirectAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if aligned(p) {
		return d.direct.ReadAt(p, off)
	}
	buf := alignedBuffer(len(p))
	n, err := d.direct.ReadAt(buf, off)
	return copy(p, buf[:n]), err
}

func aligned(p []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%align == 0
}

func alignedBuffer(n int) []byte {
	buf := make([]byte, n+align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(buf))) % align
	return buf[skip:][:n:n]
}

// zeroChunk bounds how long a cancellation waits for the device.
const zeroChunk = 128 << 20

// Zero has the device write zeros where it can. Else it discards, which
// promises nothing: the caller must read back. Else the kernel writes them.
func (d *disk) Zero(ctx context.Context, off, length int64) (string, error) {
	method, request := host.Written, uintptr(unix.BLKZEROOUT)
	switch {
	case d.offloads:
		method = host.WriteZeroes
	case d.discards:
		method, request = host.Discard, unix.BLKDISCARD
	}
	for done := int64(0); done < length; {
		if err := ctx.Err(); err != nil {
			return method, err
		}
		chunk := [2]uint64{uint64(off + done), uint64(min(zeroChunk, length-done))}
		if err := d.ioctl(request, unsafe.Pointer(&chunk)); err != nil {
			return method, fmt.Errorf("zero %d bytes at %d: %w", chunk[1], chunk[0], err)
		}
		done += int64(chunk[1])
	}
	return method, nil
}

// Sync implements host.Disk: fsync of a block device flushes its cache too.
func (d *disk) Sync() error { return d.buffered.Sync() }

// Reread asks again while somebody, mostly udev, has a partition open.
func (d *disk) Reread() error {
	const tries, pause = 10, 100 * time.Millisecond
	var err error
	for range tries {
		err = d.ioctl(unix.BLKRRPART, nil)
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(pause) //nolint:forbidigo // a second at most, and nothing tells when it ends
	}
	// A device without partitions of the kernel's, such as a plain loop
	// device, has nothing to read again.
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// Close implements host.Disk.
func (d *disk) Close() error {
	var errs []error
	for _, f := range []io.Closer{d.direct, d.buffered} {
		if f != (*os.File)(nil) {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
