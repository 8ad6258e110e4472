// Package host is the computer that the agent works on, behind an interface:
// Linux with real block devices, or a machine of the lab. Everything that
// decides or moves data lives above it and is the same code for both.
package host

import (
	"context"
	"io"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// Host is the computer that the agent works on.
type Host interface {
	// BootID is the kernel's random boot ID.
	BootID() (string, error)
	// System fills in kernel, arch, hostname, root, RAM and tools.
	System(ctx context.Context) (api.Inventory, error)
	// Topology lists the whole disks in device order with their kernel
	// partitions' names and their holders. Partition tables and signatures
	// are read from the disks by the caller.
	Topology(ctx context.Context) ([]api.Disk, error)
	// OpenDisk opens a whole disk by its kernel name. Opened to write it is
	// opened exclusively (O_EXCL): a disk in use is an error.
	OpenDisk(ctx context.Context, name string, write bool) (Disk, error)
	// Run runs a tool by argument list. A non-zero exit is in the Output,
	// not an error; a missing tool is an error.
	Run(ctx context.Context, args ...string) (Output, error)
	// Unmount and SwapOff release what has no tool of its own.
	Unmount(ctx context.Context, mountPoint string) error
	SwapOff(ctx context.Context, device string) error
	// RAMDir is a directory in RAM for jobs and the staged image
	// (/dev/shm/ironlot on Linux). It does not survive a reboot.
	RAMDir() string
	// RAMFree is how many bytes RAMDir may still take.
	RAMFree() (uint64, error)
	// Spawn starts the agent itself with arguments, detached from the
	// caller: it survives the caller's end.
	Spawn(ctx context.Context, args ...string) error
	// Executable is the path of the agent's own file.
	Executable() (string, error)
	// Reset syncs, remounts read-only and resets the machine through SysRq.
	// On success it returns and the machine is gone moments later.
	Reset(ctx context.Context) error
}

// Disk is an open whole disk.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	Size() int64
	SectorSize() int
	// ReadDirectAt reads past the page cache; offset and length are
	// multiples of 4096 or reach the end of the disk.
	ReadDirectAt(p []byte, off int64) (int, error)
	// Zero makes a range read as zeros and says how: Discard, WriteZeroes
	// or Written. Discard counts only where the device
	// promises zeros or the caller's read-back has seen them.
	Zero(ctx context.Context, off, length int64) (method string, err error)
	// Sync flushes the device's write cache.
	Sync() error
	// Reread asks the kernel to read the partition table again.
	Reread() error
	Close() error
}

// Output is how a tool ended.
type Output struct {
	Args []string
	Exit int
	Tail string // last lines of both streams
}
