// Package hosttest is a host.Host for tests: disks are sparse files, RAM is
// a temporary directory, and faults are injected by functions.
package hosttest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
)

var _ host.Host = (*Host)(nil)

// Host is a computer made of files. Its fields may be set before use.
type Host struct {
	Boot  string
	Disks []*Disk
	// Inventory is what System answers.
	Inventory api.Inventory
	// Blind fails System and Topology.
	Blind error
	// Free answers RAMFree; nil means 1 TiB.
	Free func() (uint64, error)
	// Tool runs what Run is asked for; nil means that no tool is installed.
	Tool func(args ...string) (host.Output, error)
	// Start does what Spawn is asked for; nil makes Spawn an error.
	Start func(args ...string) error

	ram string

	mu     sync.Mutex
	ran    [][]string
	resets int
}

// New makes a host in rescue with the disks.
func New(t testing.TB, disks ...*Disk) *Host {
	t.Helper()
	const boot = "2c2a1f5e-0000-4000-8000-000000000001"
	return &Host{
		Boot:  boot,
		Disks: disks,
		Inventory: api.Inventory{
			BootID: boot, Kernel: "6.8.0-test", Arch: runtime.GOARCH, Hostname: "rescue",
			Root: api.Root{FSType: "tmpfs", Source: "tmpfs", InRAM: true},
			RAM:  64 << 30, RAMFree: 32 << 30,
		},
		ram: t.TempDir(),
	}
}

// BootID answers Boot.
func (h *Host) BootID() (string, error) { return h.Boot, nil }

// System answers Inventory.
func (h *Host) System(context.Context) (api.Inventory, error) { return h.Inventory, h.Blind }

// Topology lists the disks.
func (h *Host) Topology(context.Context) ([]api.Disk, error) {
	var all []api.Disk
	for _, d := range h.Disks {
		all = append(all, d.Info)
	}
	return all, h.Blind
}

// OpenDisk opens a disk; a held one cannot be opened to write.
func (h *Host) OpenDisk(_ context.Context, name string, write bool) (host.Disk, error) {
	for _, d := range h.Disks {
		if d.Info.Name == name {
			return d.open(write)
		}
	}
	return nil, fmt.Errorf("disk %s: %w", name, syscall.ENODEV)
}

// Run records the call and leaves it to Tool.
func (h *Host) Run(_ context.Context, args ...string) (host.Output, error) {
	h.mu.Lock()
	h.ran = append(h.ran, args)
	h.mu.Unlock()
	if h.Tool == nil {
		return host.Output{}, fmt.Errorf("%s: %w", args[0], syscall.ENOENT)
	}
	return h.Tool(args...)
}

// Ran lists what Run was asked for.
func (h *Host) Ran() [][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([][]string(nil), h.ran...)
}

// Unmount takes a mount away from every disk.
func (h *Host) Unmount(_ context.Context, mountPoint string) error {
	return h.release(api.HolderMount, func(x api.Holder) bool { return x.Name == mountPoint })
}

// SwapOff takes swap on a device away from every disk.
func (h *Host) SwapOff(_ context.Context, device string) error {
	return h.release(api.HolderSwap, func(x api.Holder) bool { return x.Device == device })
}

func (h *Host) release(kind api.HolderKind, match func(api.Holder) bool) error {
	found := false
	for _, d := range h.Disks {
		var kept []api.Holder
		for _, x := range d.Info.Holders {
			if x.Kind == kind && match(x) {
				found = true
				continue
			}
			kept = append(kept, x)
		}
		d.Info.Holders = kept
	}
	if !found {
		return syscall.EINVAL
	}
	return nil
}

// RAMDir is a temporary directory.
func (h *Host) RAMDir() string { return h.ram }

// RAMFree answers Free.
func (h *Host) RAMFree() (uint64, error) {
	if h.Free == nil {
		return 1 << 40, nil
	}
	return h.Free()
}

// Spawn leaves it to Start.
func (h *Host) Spawn(_ context.Context, args ...string) error {
	if h.Start == nil {
		return syscall.ENOSYS
	}
	return h.Start(args...)
}

// Executable is the test's own file name; it need not exist.
func (h *Host) Executable() (string, error) { return "/proc/self/exe", nil }

// Reset counts.
func (h *Host) Reset(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resets++
	return nil
}

// Resets tells how often Reset was called.
func (h *Host) Resets() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.resets
}
