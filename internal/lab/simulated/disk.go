package simulated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// disk is a disk in its slot. Its content outlives every boot.
type disk struct {
	slot int // from 1
	spec DiskSpec
	path string
	f    *os.File

	mu      sync.Mutex
	writers int // exclusive opens right now
}

func newDisk(path string, slot int, spec DiskSpec) (*disk, error) {
	if spec.Size < 16*layout.MiB || spec.Size%4096 != 0 {
		return nil, fmt.Errorf("a disk of %d bytes cannot be made: it must have at least 16 MiB and a multiple of 4096 bytes", spec.Size)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(spec.Size); err != nil {
		f.Close()
		return nil, err
	}
	return &disk{slot: slot, spec: spec, path: path, f: f}, nil
}

// DiskCount is what one boot did to one disk.
type DiskCount struct {
	Opens        int // for writing
	Refused      int // opens for writing that found the disk in use
	BytesWritten int64
	BytesZeroed  int64
	HeadWrites   int // writes that touched sector 0
}

// DiskPath is the file that holds the disk in a slot, counted from 1.
func (m *Machine) DiskPath(slot int) string { return m.disks[slot-1].path }

// openDisk is a disk as one boot has opened it.
type openDisk struct {
	b      *boot
	d      *disk
	write  bool
	closed sync.Once
}

var _ host.Disk = (*openDisk)(nil)

func (b *boot) open(d *disk, write bool) (*openDisk, error) {
	if write {
		if err := b.claim(d); err != nil {
			return nil, err
		}
	}
	return &openDisk{b: b, d: d, write: write}, nil
}

// claim takes a disk for exclusive use.
func (b *boot) claim(d *disk) error {
	busy := b.inUse(d.slot-1) && !b.m.currentFaults().BusyWrites
	d.mu.Lock()
	busy = busy || d.writers > 0
	if !busy {
		d.writers++
	}
	d.mu.Unlock()
	b.count(d, func(c *DiskCount) {
		if busy {
			c.Refused++
		} else {
			c.Opens++
		}
	})
	if busy {
		return &os.PathError{Op: "open", Path: "/dev/" + b.names[d.slot-1], Err: syscall.EBUSY}
	}
	return nil
}

func (b *boot) count(d *disk, add func(*DiskCount)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	add(&b.counts[d.slot-1])
}

// Size is in bytes.
func (o *openDisk) Size() int64 { return o.d.spec.Size }

// SectorSize is in bytes.
func (o *openDisk) SectorSize() int { return layout.SectorSize }

// ReadAt reads while the boot lives.
func (o *openDisk) ReadAt(p []byte, off int64) (n int, err error) {
	err = o.b.alive(func() error {
		n, err = o.d.f.ReadAt(p, off)
		return err
	})
	return n, err
}

// ReadDirectAt insists on the alignment that a device asks for.
func (o *openDisk) ReadDirectAt(p []byte, off int64) (int, error) {
	if end := off + int64(len(p)); off%4096 != 0 || end%4096 != 0 && end != o.Size() {
		return 0, syscall.EINVAL
	}
	return o.ReadAt(p, off)
}

// WriteAt writes while the boot lives.
func (o *openDisk) WriteAt(p []byte, off int64) (n int, err error) {
	if off < 0 || off+int64(len(p)) > o.Size() {
		return 0, syscall.ENOSPC
	}
	o.b.m.hold("disk write")
	err = o.change(off, int64(len(p)), func(c *DiskCount) { c.BytesWritten += int64(len(p)) }, func() error {
		n, err = o.d.put(p, off)
		return err
	})
	if err == nil {
		err = o.b.afterWrite(o.d, p)
	}
	return n, err
}

// put stores what is written. Zeros take no room, for the disks of a large lab
// may all be in RAM.
func (d *disk) put(p []byte, off int64) (int, error) {
	if isZero(p) {
		if err := punchHole(d.f, off, int64(len(p))); err == nil {
			return len(p), nil
		}
	}
	return d.f.WriteAt(p, off)
}

// Zero punches a hole.
func (o *openDisk) Zero(ctx context.Context, off, length int64) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if off < 0 || length < 0 || off+length > o.Size() {
		return "", syscall.EINVAL
	}
	err := o.change(off, length, func(c *DiskCount) { c.BytesZeroed += length }, func() error {
		if length == 0 || o.b.m.currentFaults().LyingDiscard {
			return nil
		}
		return punchHole(o.d.f, off, length)
	})
	return "discard", err
}

// change does a write with the faults that apply to it.
func (o *openDisk) change(off, length int64, count func(*DiskCount), do func() error) error {
	if !o.write {
		return syscall.EBADF
	}
	faults := o.b.m.currentFaults()
	if faults.WriteErrorDisk == o.d.slot && off <= faults.WriteErrorAt && faults.WriteErrorAt < off+length {
		return syscall.EIO
	}
	if err := o.b.alive(do); err != nil {
		return err
	}
	o.b.count(o.d, func(c *DiskCount) {
		count(c)
		if off < layout.SectorSize && length > 0 {
			c.HeadWrites++
		}
	})
	return nil
}

// afterWrite is where a disk is slow, and where the machine may die of a write.
func (b *boot) afterWrite(d *disk, p []byte) error {
	if rate := b.m.currentFaults().BytesPerSecond; rate > 0 {
		b.sleep(time.Duration(float64(len(p)) / float64(rate) * float64(time.Second)))
	}
	b.mu.Lock()
	if !isZero(p) {
		b.written += int64(len(p))
	}
	written := b.written
	b.mu.Unlock()
	m := b.m
	m.mu.Lock()
	reset := m.faults.ResetAfterWrite > 0 && written >= m.faults.ResetAfterWrite
	if reset {
		m.faults.ResetAfterWrite = 0
	}
	panics := m.faults.BusyWrites && m.random.IntN(8) == 0
	m.mu.Unlock()
	switch {
	case reset:
		b.kill()
		go m.restart(b)
		return errGone
	case panics && b.inUse(d.slot-1):
		b.kill()
		go m.panic(b)
		return errGone
	}
	return nil
}

// isZero compares the bytes with themselves, one further.
func isZero(p []byte) bool {
	return len(p) == 0 || p[0] == 0 && bytes.Equal(p[:len(p)-1], p[1:])
}

// alive runs an access to a disk; the power cannot go away in its middle.
func (b *boot) alive(access func() error) error {
	b.gate.RLock()
	defer b.gate.RUnlock()
	if b.dead {
		return errGone
	}
	return access()
}

// Sync is done with every write already: the page cache is the platter.
func (o *openDisk) Sync() error { return o.b.alive(func() error { return nil }) }

// Reread lets the kernel see the partition table again.
func (o *openDisk) Reread() error {
	if o.b.inUse(o.d.slot - 1) {
		return syscall.EBUSY
	}
	return o.b.alive(func() error { return nil })
}

// Close gives the disk back.
func (o *openDisk) Close() error {
	err := errors.New("the disk was closed twice")
	o.closed.Do(func() {
		err = nil
		if o.write {
			o.d.mu.Lock()
			o.d.writers--
			o.d.mu.Unlock()
		}
	})
	return err
}
