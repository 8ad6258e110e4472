package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
)

// Kind is what was done to a disk.
type Kind string

// The operations on a disk.
const (
	Write  Kind = "write"
	Zero   Kind = "zero"
	Sync   Kind = "sync"
	Reread Kind = "reread"
)

// Op is one operation on a disk, offset and length in bytes.
type Op struct {
	Kind     Kind
	Off, Len int64
}

// Disk is a file that looks like a whole disk. The fields may be set before
// it is opened.
type Disk struct {
	Info api.Disk
	// Method is how Zero says that it works; empty means discard.
	Method string
	// LyingDiscard makes Zero succeed and change nothing.
	LyingDiscard bool
	// Before is called before each operation; its error fails the operation.
	Before func(Op) error
	// After is called when an operation is done.
	After func(Op)
	// Corrupt may change what ReadDirectAt has read at an offset.
	Corrupt func(p []byte, off int64)

	path string

	mu     sync.Mutex
	ops    []Op
	writer bool
}

// NewDisk makes a disk of zeros with sectors of 512 bytes.
func NewDisk(t testing.TB, name, serial string, size int64) *Disk {
	t.Helper()
	d := &Disk{
		Info: api.Disk{Name: name, Serial: serial, WWN: "naa.5000" + serial, Model: "TEST", Size: uint64(size), SectorSize: 512},
		path: filepath.Join(t.TempDir(), name),
	}
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
	return d
}

// Path is the file that holds the disk.
func (d *Disk) Path() string { return d.path }

// Put writes bytes to the disk behind the back of its user.
func (d *Disk) Put(t testing.TB, p []byte, off int64) {
	t.Helper()
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(p, off)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Get reads bytes of the disk.
func (d *Disk) Get(t testing.TB, off, length int64) []byte {
	t.Helper()
	f, err := os.Open(d.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := make([]byte, length)
	if _, err := f.ReadAt(p, off); err != nil {
		t.Fatal(err)
	}
	return p
}

// Ops lists what was done to the disk.
func (d *Disk) Ops() []Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Op(nil), d.ops...)
}

func (d *Disk) open(write bool) (host.Disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if write && (d.writer || len(d.Info.Holders) > 0) {
		return nil, fmt.Errorf("disk %s: %w", d.Info.Name, syscall.EBUSY)
	}
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	f, err := os.OpenFile(d.path, flag, 0)
	if err != nil {
		return nil, err
	}
	d.writer = d.writer || write
	return &openDisk{d: d, f: f, write: write}, nil
}

// do runs one operation between its hooks and records it.
func (d *Disk) do(op Op, run func() error) error {
	if d.Before != nil {
		if err := d.Before(op); err != nil {
			return err
		}
	}
	if err := run(); err != nil {
		return err
	}
	d.mu.Lock()
	d.ops = append(d.ops, op)
	d.mu.Unlock()
	if d.After != nil {
		d.After(op)
	}
	return nil
}

type openDisk struct {
	d     *Disk
	f     *os.File
	write bool
}

func (o *openDisk) Size() int64     { return int64(o.d.Info.Size) }
func (o *openDisk) SectorSize() int { return o.d.Info.SectorSize }

func (o *openDisk) ReadAt(p []byte, off int64) (int, error) { return o.f.ReadAt(p, off) }

// ReadDirectAt insists on the alignment that a device asks for.
func (o *openDisk) ReadDirectAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	if off%4096 != 0 || end%4096 != 0 && end != o.Size() {
		return 0, fmt.Errorf("read %d bytes at %d: %w", len(p), off, syscall.EINVAL)
	}
	n, err := o.f.ReadAt(p, off)
	if o.d.Corrupt != nil {
		o.d.Corrupt(p[:n], off)
	}
	return n, err
}

func (o *openDisk) WriteAt(p []byte, off int64) (n int, err error) {
	sector := int64(o.SectorSize())
	if off < 0 || off%sector != 0 || int64(len(p))%sector != 0 {
		return 0, fmt.Errorf("write %d bytes at %d: %w", len(p), off, syscall.EINVAL)
	}
	if off+int64(len(p)) > o.Size() {
		return 0, fmt.Errorf("write %d bytes at %d: %w", len(p), off, syscall.ENOSPC)
	}
	err = o.d.do(Op{Write, off, int64(len(p))}, func() error {
		n, err = o.f.WriteAt(p, off)
		return err
	})
	return n, err
}

func (o *openDisk) Zero(ctx context.Context, off, length int64) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if off < 0 || length < 0 || off+length > o.Size() {
		return "", fmt.Errorf("zero %d bytes at %d: %w", length, off, syscall.EINVAL)
	}
	method := o.d.Method
	if method == "" {
		method = "discard"
	}
	return method, o.d.do(Op{Zero, off, length}, func() error {
		if o.d.LyingDiscard {
			return nil
		}
		return zero(o.f, off, length)
	})
}

// writeZeros is for filesystems that cannot punch holes.
func writeZeros(f *os.File, off, length int64) error {
	_, err := io.CopyN(io.NewOffsetWriter(f, off), zeros{}, length)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func (o *openDisk) Sync() error   { return o.d.do(Op{Kind: Sync}, func() error { return nil }) }
func (o *openDisk) Reread() error { return o.d.do(Op{Kind: Reread}, func() error { return nil }) }

func (o *openDisk) Close() error {
	if o.write {
		o.d.mu.Lock()
		o.d.writer = false
		o.d.mu.Unlock()
	}
	return o.f.Close()
}
