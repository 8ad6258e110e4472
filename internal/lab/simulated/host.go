package simulated

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/cli"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

var _ host.Host = (*rescueHost)(nil)

// rescueHost is the computer that the agent sees in a rescue boot.
type rescueHost struct {
	b    *boot
	exe  string // the uploaded agent, on the real filesystem
	root bool   // runs as root
}

// runAgent runs the agent's own code in this process.
func (h *rescueHost) runAgent(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(ctx, h, "lab-simulated", args, stdin, stdout, stderr)
}

// BootID is the boot's.
func (h *rescueHost) BootID() (string, error) { return h.b.id, h.b.ctx.Err() }

// System says that root is in RAM, and that the machine is simulated.
func (h *rescueHost) System(context.Context) (api.Inventory, error) {
	free, err := h.ramFree()
	return api.Inventory{
		BootID:   h.b.id,
		Kernel:   "6.8.0-lab-simulated",
		Arch:     goarch(h.b.m.opts.Machine),
		Hostname: "rescue-" + h.b.m.opts.Name,
		Root:     api.Root{FSType: "overlay", Source: "overlay", InRAM: true},
		RAM:      h.b.ram(),
		RAMFree:  free,
		Tools:    []string{"mdadm", "lvm", "dmsetup"},
	}, err
}

func goarch(machine string) string {
	if machine == "aarch64" {
		return "arm64"
	}
	return "amd64"
}

// Topology lists the disks in the order in which this boot found them.
func (h *rescueHost) Topology(context.Context) ([]api.Disk, error) {
	h.b.m.hold("inspect")
	var all []api.Disk
	for _, slot := range h.b.order {
		d := h.b.m.disks[slot]
		all = append(all, api.Disk{
			Name: h.b.names[slot], Serial: d.spec.Serial, WWN: d.spec.WWN, Model: d.spec.Model,
			ByID: byID(d.spec), Size: uint64(d.spec.Size), SectorSize: layout.SectorSize,
			Parts: h.b.kernelParts(slot), Holders: h.b.holders(slot),
		})
	}
	return all, h.b.ctx.Err()
}

// byID is what udev makes of model, serial and WWN.
func byID(spec DiskSpec) []string {
	names := []string{"scsi-" + strings.ReplaceAll(spec.Model, " ", "_") + "_" + spec.Serial}
	if spec.WWN != "" {
		names = append(names, "wwn-"+spec.WWN)
	}
	return names
}

func (b *boot) kernelParts(slot int) []api.Partition {
	d := b.m.disks[slot]
	var parts []api.Partition
	for i, p := range layout.Read(d.f, d.spec.Size) {
		parts = append(parts, api.Partition{Number: i + 1, Name: b.device(slot, i+1), Offset: uint64(p.Offset), Size: uint64(p.Size)})
	}
	return parts
}

// OpenDisk needs root.
func (h *rescueHost) OpenDisk(_ context.Context, name string, write bool) (host.Disk, error) {
	slot := slices.Index(h.b.names, name)
	if slot < 0 {
		return nil, &fs.PathError{Op: "open", Path: "/dev/" + name, Err: syscall.ENOENT}
	}
	if !h.root {
		return nil, &fs.PathError{Op: "open", Path: "/dev/" + name, Err: syscall.EACCES}
	}
	return h.b.open(h.b.m.disks[slot], write)
}

// Run emulates the tools.
func (h *rescueHost) Run(_ context.Context, args ...string) (host.Output, error) {
	if !h.root {
		return host.Output{}, syscall.EPERM
	}
	if len(args) == 0 || !slices.Contains([]string{"mdadm", "lvm", "lvchange", "vgchange", "dmsetup"}, args[0]) {
		return host.Output{}, fmt.Errorf("%v: %w", args, fs.ErrNotExist)
	}
	exit, tail := h.b.runTool(args)
	return host.Output{Args: args, Exit: exit, Tail: tail}, h.b.ctx.Err()
}

// Unmount finds nothing mounted: rescue mounts no disk.
func (h *rescueHost) Unmount(_ context.Context, mountPoint string) error {
	return &fs.PathError{Op: "umount", Path: mountPoint, Err: syscall.EINVAL}
}

// SwapOff finds no swap: rescue uses none.
func (h *rescueHost) SwapOff(_ context.Context, device string) error {
	return &fs.PathError{Op: "swapoff", Path: device, Err: syscall.EINVAL}
}

// RAMDir is gone at the next reset.
func (h *rescueHost) RAMDir() string { return h.b.ramDir() }

// RAMFree is the RAM without what lies in RAMDir.
func (h *rescueHost) RAMFree() (uint64, error) {
	h.b.m.hold("stage") // nothing else asks
	return h.ramFree()
}

func (h *rescueHost) ramFree() (uint64, error) {
	used, err := diskUsage(h.b.ramDir())
	return h.b.ram() - min(used, h.b.ram()), err
}

func (b *boot) ram() uint64 {
	if less := b.m.currentFaults().RAM; less > 0 {
		return less
	}
	return b.m.opts.RAM
}

// diskUsage counts blocks, so that holes are free.
func diskUsage(dir string) (uint64, error) {
	var used uint64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		used += allocated(info)
		return nil
	})
	return used, err
}

func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func allocated(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Blocks) * 512
	}
	return uint64(info.Size())
}

// Spawn runs the agent in a goroutine that lives as long as the boot.
func (h *rescueHost) Spawn(_ context.Context, args ...string) error {
	job := len(args) > 0 && args[0] == "job"
	if len(args) > 0 && args[0] == "reset" {
		h.b.m.hold("reset asked")
	}
	if err := h.b.ctx.Err(); err != nil {
		return err
	}
	h.b.m.running.Go(func() {
		if job {
			h.b.m.hold("job")
		}
		h.runAgent(h.b.ctx, args, strings.NewReader(""), io.Discard, io.Discard)
		if job {
			h.b.m.hold("job ended")
		}
	})
	return nil
}

// Executable is the uploaded file.
func (h *rescueHost) Executable() (string, error) { return h.exe, nil }

// Reset resets the machine in the background, as SysRq does: the caller may
// still say so.
func (h *rescueHost) Reset(context.Context) error {
	if !h.root {
		return syscall.EPERM
	}
	h.b.m.hold("reset")
	h.b.m.logf("sysrq: resetting")
	go h.b.m.restart(h.b)
	return nil
}
