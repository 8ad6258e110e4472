//go:build linux

// Package linux is the host.Host of a real machine: what the kernel tells in
// /sys and /proc, block devices, and a few helpers run by argument list.
package linux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/fault"
)

// DefaultRAMDir is where jobs and the staged image lie: a tmpfs on every
// Linux with a C library, as POSIX shared memory needs it.
const DefaultRAMDir = "/dev/shm/ironlot"

// Options change what the host is. The zero value is the real machine.
type Options struct {
	// RAMDir replaces DefaultRAMDir.
	RAMDir string
	// LoopDevices, when set, are the only disks that there are: every disk
	// of the machine is out of sight and out of reach. Their serial is the
	// name of their backing file without extension.
	LoopDevices []string
	// Root stands before /sys, /proc, /dev and /run, for tests.
	Root string
}

// Host is a Linux machine.
type Host struct{ opt Options }

var _ host.Host = (*Host)(nil)

// New makes the host that this process runs on.
func New(opt Options) *Host {
	if opt.RAMDir == "" {
		opt.RAMDir = DefaultRAMDir
	}
	return &Host{opt: opt}
}

// path joins a path below the root of the options.
func (h *Host) path(elem ...string) string {
	return filepath.Join(append([]string{"/", h.opt.Root}, elem...)...)
}

// text reads a small file of the kernel's, trimmed; empty when it is not there.
func (h *Host) text(elem ...string) string {
	b, err := os.ReadFile(h.path(elem...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(bytes.ToValidUTF8(bytes.Trim(b, "\x00"), []byte("?"))))
}

// raw reads a binary file of the kernel's, nil when it is not there.
func (h *Host) raw(elem ...string) []byte {
	b, err := os.ReadFile(h.path(elem...))
	if err != nil {
		return nil
	}
	return b
}

func (h *Host) number(elem ...string) uint64 {
	n, err := strconv.ParseUint(h.text(elem...), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// BootID reads the kernel's random ID of this boot.
func (h *Host) BootID() (string, error) {
	id := h.text("proc/sys/kernel/random/boot_id")
	if id == "" {
		return "", fault.Operator("mount /proc in the rescue system", "the kernel tells no boot ID in /proc/sys/kernel/random/boot_id")
	}
	return id, nil
}

// System implements host.Host.
func (h *Host) System(context.Context) (api.Inventory, error) {
	boot, err := h.BootID()
	if err != nil {
		return api.Inventory{}, err
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return api.Inventory{}, fmt.Errorf("uname: %w", err)
	}
	root, err := h.root()
	if err != nil {
		return api.Inventory{}, err
	}
	free, err := h.RAMFree()
	if err != nil {
		return api.Inventory{}, err
	}
	return api.Inventory{
		BootID:   boot,
		Kernel:   unix.ByteSliceToString(uts.Release[:]),
		Arch:     runtime.GOARCH,
		Hostname: unix.ByteSliceToString(uts.Nodename[:]),
		Root:     root,
		RAM:      h.memory("MemTotal"),
		RAMFree:  free,
		Tools:    tools(),
	}, nil
}

// memory reads a line of /proc/meminfo, in bytes.
func (h *Host) memory(key string) uint64 {
	for line := range strings.Lines(h.text("proc/meminfo")) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == key+":" {
			n, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// RAMDir implements host.Host.
func (h *Host) RAMDir() string { return h.opt.RAMDir }

// RAMFree is the lesser of what the filesystem may take and what the kernel
// can give.
func (h *Host) RAMFree() (uint64, error) {
	dir := h.opt.RAMDir
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	for errors.Is(err, unix.ENOENT) && dir != "/" {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &fs)
	}
	if err != nil {
		return 0, fmt.Errorf("free room of %s: %w", dir, err)
	}
	return min(fs.Bavail*uint64(fs.Bsize), h.memory("MemAvailable")), nil
}

// searchPath is where administrators' tools are, whatever PATH sudo left.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func find(tool string) (string, error) {
	for _, dir := range filepath.SplitList(searchPath) {
		path := filepath.Join(dir, tool)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fault.Operator("install it in the rescue system", "the tool %s is not there: %w", tool, exec.ErrNotFound)
}

func tools() []string {
	var out []string
	for _, tool := range []string{"mdadm", "lvm", "dmsetup"} {
		if _, err := find(tool); err == nil {
			out = append(out, tool)
		}
	}
	return out
}

// tailBytes is how much of a tool's output is kept.
const tailBytes = 4 << 10

// Run implements host.Host.
func (h *Host) Run(ctx context.Context, args ...string) (host.Output, error) {
	if len(args) == 0 {
		return host.Output{}, errors.New("no tool named")
	}
	path, err := find(args[0])
	if err != nil {
		return host.Output{}, err
	}
	var both bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Env = []string{"PATH=" + searchPath, "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = &both, &both
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	out := host.Output{Args: args, Exit: cmd.ProcessState.ExitCode(), Tail: tail(both.Bytes())}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", args[0], err)
	}
	return out, err
}

func tail(b []byte) string {
	if len(b) > tailBytes {
		b = b[len(b)-tailBytes:]
	}
	return strings.TrimSpace(string(bytes.ToValidUTF8(b, []byte("?"))))
}

// Unmount implements host.Host.
func (h *Host) Unmount(_ context.Context, mountPoint string) error {
	if err := unix.Unmount(mountPoint, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", mountPoint, err)
	}
	return nil
}

// SwapOff takes a kernel name or the path of a swap file.
func (h *Host) SwapOff(_ context.Context, device string) error {
	path := device
	if !filepath.IsAbs(path) {
		path = h.path("dev", device)
	}
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return fmt.Errorf("swapoff: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(p)), 0, 0); errno != 0 {
		return fmt.Errorf("swapoff %s: %w", path, errno)
	}
	return nil
}

// Executable implements host.Host.
func (h *Host) Executable() (string, error) { return os.Executable() }

// Reset implements host.Host through SysRq (kernel documentation,
// admin-guide/sysrq): sync, remount read-only, reboot without more ado.
func (h *Host) Reset(context.Context) error {
	if err := os.WriteFile(h.path("proc/sys/kernel/sysrq"), []byte("1"), 0); err != nil {
		return fault.Operator("run the agent as root", "SysRq cannot be enabled: %w", err)
	}
	for _, command := range []string{"s", "u", "b"} {
		if err := os.WriteFile(h.path("proc/sysrq-trigger"), []byte(command), 0); err != nil {
			return fault.Operator("run the agent as root; its kernel needs CONFIG_MAGIC_SYSRQ", "SysRq %s failed: %w", command, err)
		}
	}
	return nil
}
