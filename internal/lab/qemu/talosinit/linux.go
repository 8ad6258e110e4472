//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironlot/ironlot/internal/lab/state"
)

// mounts mounts what the rest needs.
func mounts() error {
	for _, fs := range []struct{ kind, on string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}} {
		if err := unix.Mount(fs.kind, fs.on, fs.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", fs.on, err)
		}
	}
	return nil
}

// redirect sends what is printed to the console: the kernel gave PID 1 one
// only if /dev/console was there.
func redirect() {
	if console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0); err == nil {
		os.Stdout, os.Stderr = console, console
	}
}

// modules loads the drivers in their order.
func modules() error {
	order, err := os.ReadFile("/lib/modules/order")
	if err != nil {
		return err
	}
	for path := range strings.FieldsSeq(string(order)) {
		if err := load(path); err != nil {
			return fmt.Errorf("load %s: %w", path, err)
		}
	}
	return nil
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

// network waits for the network card and gives it its address: what DHCP
// would.
func network(ctx context.Context) error {
	for _, link := range []struct{ name, address, mask string }{{"lo", "127.0.0.1", "255.0.0.0"}, {"eth0", address, "255.255.255.0"}} {
		if err := await(ctx, "/sys/class/net/"+link.name); err != nil {
			return err
		}
		if err := configure(link.name, link.address, link.mask); err != nil {
			return fmt.Errorf("network %s: %w", link.name, err)
		}
	}
	return nil
}

// configure sets address and mask and brings the link up (netdevice(7)).
func configure(name, address, mask string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	for _, set := range []struct {
		request uint
		value   string
	}{{unix.SIOCSIFADDR, address}, {unix.SIOCSIFNETMASK, mask}} {
		if err := r.SetInet4Addr(net.ParseIP(set.value).To4()); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, set.request, r); err != nil {
			return err
		}
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// await waits until the kernel shows a file.
func await(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the kernel shows no %s after %s", path, within)
		}
	}
}

// quiet is how long no new disk must appear until all are thought to be
// there: the kernel finds SCSI disks in the background.
const quiet = time.Second

// findDisks waits for the disks and lists them in device order. Their files
// stay open for the life of the system.
func findDisks(ctx context.Context) ([]state.Disk, error) {
	names, err := settle(ctx)
	if err != nil {
		return nil, err
	}
	var all []state.Disk
	for _, name := range names {
		d, err := open(name)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// settle waits until the list of disks stays the same.
func settle(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last []string
	for since := time.Now(); len(last) == 0 || time.Since(since) < quiet; {
		now, err := diskNames()
		if err != nil {
			return nil, err
		}
		if !slices.Equal(now, last) {
			last, since = now, time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last, fmt.Errorf("the kernel's disks do not settle: %v", last)
		}
	}
	return last, nil
}

func diskNames() ([]string, error) {
	paths, err := filepath.Glob("/sys/block/*/device")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return names, nil
}

func open(name string) (state.Disk, error) {
	sectors, err := os.ReadFile("/sys/block/" + name + "/size")
	if err != nil {
		return state.Disk{}, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(sectors)), 10, 64)
	if err != nil {
		return state.Disk{}, err
	}
	f, err := os.OpenFile("/dev/"+name, os.O_RDWR, 0)
	if err != nil {
		return state.Disk{}, err
	}
	return state.Disk{File: f, Size: n * 512, Name: name, Serial: serial(name)}, nil
}

// serial reads NVMe's, or the SCSI unit serial number page (SPC-4, 7.8.15).
func serial(name string) string {
	if data, err := os.ReadFile("/sys/block/" + name + "/device/serial"); err == nil {
		return strings.TrimSpace(string(data))
	}
	page, err := os.ReadFile("/sys/block/" + name + "/device/vpd_pg80")
	if err != nil || len(page) < 4 {
		return "no serial"
	}
	return strings.TrimSpace(string(page[4:]))
}
