//go:build linux

// Package looptest gives tests real block devices, loop devices over sparse
// files in RAM, and filesystems in RAM that are soon full. Both need root;
// elsewhere tests are skipped, and fail where CI=true says that they must not
// be.
package looptest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ironlot/ironlot/internal/agent/host/linux"
	"github.com/ironlot/ironlot/internal/testenv"
)

// Device is a loop device.
type Device struct {
	Name   string // kernel name, such as loop7
	Path   string // device file
	File   string // backing file, one byte for each of the device
	Serial string // as the agent sees it
	Size   int64  // bytes
}

// New makes a loop device of zeros. The serial is its backing file's name, so
// it should be unique on the machine.
func New(t testing.TB, serial string, size int64, sectorSize int) Device {
	t.Helper()
	require(t)
	dir, err := os.MkdirTemp(ram(t), "ironlot-loop-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := Device{File: filepath.Join(dir, serial+".img"), Serial: serial, Size: size}
	if err := os.WriteFile(d.File, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(d.File, size); err != nil {
		t.Fatal(err)
	}
	d.Path = Tool(t, "losetup", "--find", "--show", "--sector-size", strconv.Itoa(sectorSize), d.File)
	d.Name = filepath.Base(d.Path)
	t.Cleanup(func() { Tool(t, "losetup", "--detach", d.Path) })
	return d
}

// Host is the real Linux host, to which these devices are the only disks.
func Host(t testing.TB, devices ...Device) *linux.Host {
	t.Helper()
	return linux.New(linux.Options{RAMDir: RAMDir(t), LoopDevices: Names(devices...)})
}

// RAMDir is a temporary directory in RAM.
func RAMDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(ram(t), "ironlot-ram-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// SmallRAM makes a directory a filesystem in RAM of its own, with the options
// of tmpfs(5), such as "size=1m" and "nr_inodes=3". Where nothing can be
// mounted the test is skipped.
func SmallRAM(t testing.TB, dir, options string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		skip(t, "no filesystem can be mounted: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("umount %s: %v", dir, err)
		}
	})
}

// Names lists the kernel names.
func Names(devices ...Device) []string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.Name
	}
	return names
}

// Tool runs a tool that must succeed and gives its output. A tool that is not
// installed skips the test.
func Tool(t testing.TB, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		skip(t, args[0]+" is not installed")
	}
	// A test's context has ended when its cleanups run.
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), path, args[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func require(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "loop devices need root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		skip(t, "this kernel has no loop devices")
	}
}

func skip(t testing.TB, why string) {
	t.Helper()
	testenv.Lacks(t, why)
}

// ram prefers RAM, where flushes cost nothing.
func ram(t testing.TB) string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return t.TempDir()
}
