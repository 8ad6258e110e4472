//go:build linux

package linux

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// Topology implements host.Host.
func (h *Host) Topology(context.Context) ([]api.Disk, error) {
	mounts, err := h.mounts()
	if err != nil {
		return nil, err
	}
	users := &users{host: h, mounts: mounts, swaps: h.swaps()}
	var disks []api.Disk
	for _, name := range h.blocks() {
		if !h.isDisk(name) {
			continue
		}
		d := h.disk(name)
		d.Holders = users.of(d)
		disks = append(disks, d)
	}
	return disks, nil
}

// blocks lists the whole block devices in device order.
func (h *Host) blocks() []string {
	names := h.names("sys/block")
	slices.SortStableFunc(names, func(a, b string) int {
		aMajor, aMinor := h.deviceNumber(a)
		bMajor, bMinor := h.deviceNumber(b)
		return cmp.Or(cmp.Compare(aMajor, bMajor), cmp.Compare(aMinor, bMinor))
	})
	return names
}

func (h *Host) names(elem ...string) []string {
	entries, err := os.ReadDir(h.path(elem...))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func (h *Host) deviceNumber(name string) (major, minor int) {
	a, b, _ := strings.Cut(h.text("sys/class/block", name, "dev"), ":")
	major, _ = strconv.Atoi(a)
	minor, _ = strconv.Atoi(b)
	return major, minor
}

// isDisk leaves out what is no disk of the machine: everything that the
// kernel makes up (loop, md, dm, ram, zram, nbd, …), optical and floppy
// drives, the boot areas of eMMC, paths of multipath NVMe, empty slots.
func (h *Host) isDisk(name string) bool {
	if name == "" || strings.ContainsAny(name, "/.") || h.number("sys/block", name, "size") == 0 {
		return false
	}
	if h.opt.LoopDevices != nil {
		return slices.Contains(h.opt.LoopDevices, name) && strings.HasPrefix(name, "loop")
	}
	device, err := filepath.EvalSymlinks(h.path("sys/block", name))
	if err != nil || strings.Contains(device, "/virtual/block/") {
		return false
	}
	const cdrom = 5 // SCSI peripheral device type
	return h.text("sys/block", name, "hidden") != "1" &&
		h.text("sys/block", name, "device/type") != strconv.Itoa(cdrom) &&
		!strings.HasPrefix(name, "sr") && !strings.HasPrefix(name, "fd") &&
		(!strings.HasPrefix(name, "mmcblk") || !strings.Contains(name, "boot") && !strings.Contains(name, "rpmb"))
}

func (h *Host) disk(name string) api.Disk {
	id := h.identity(name)
	return api.Disk{
		Name:       name,
		Serial:     id.serial,
		WWN:        id.wwn,
		Model:      id.model,
		ByID:       h.byID(name),
		Size:       h.number("sys/block", name, "size") * 512,
		SectorSize: int(h.number("sys/block", name, "queue/logical_block_size")),
		ReadOnly:   h.text("sys/block", name, "ro") == "1",
		Removable:  h.text("sys/block", name, "removable") == "1",
		Parts:      h.partitions(name),
	}
}

func (h *Host) byID(name string) []string {
	var out []string
	for _, link := range h.names("dev/disk/by-id") {
		target, err := os.Readlink(h.path("dev/disk/by-id", link))
		if err == nil && filepath.Base(target) == name {
			out = append(out, link)
		}
	}
	return out
}

func (h *Host) partitions(disk string) []api.Partition {
	var out []api.Partition
	for _, name := range h.names("sys/block", disk) {
		number := h.number("sys/block", disk, name, "partition")
		if number == 0 {
			continue
		}
		out = append(out, api.Partition{
			Number: int(number),
			Name:   name,
			Offset: h.number("sys/block", disk, name, "start") * 512,
			Size:   h.number("sys/block", disk, name, "size") * 512,
		})
	}
	slices.SortFunc(out, func(a, b api.Partition) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// wholeDisk is the disk of a partition, or the device itself.
func (h *Host) wholeDisk(name string) string {
	if h.text("sys/class/block", name, "partition") == "" {
		return name
	}
	device, err := filepath.EvalSymlinks(h.path("sys/class/block", name))
	if err != nil {
		return name
	}
	return filepath.Base(filepath.Dir(device))
}

// byNumber is the kernel name of a device number, empty when there is none.
func (h *Host) byNumber(device string) string {
	target, err := os.Readlink(h.path("sys/dev/block", device))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// bySource is the kernel name behind a path such as /dev/sda2 or
// /dev/mapper/vg0-root.
func (h *Host) bySource(source string) string {
	if !strings.HasPrefix(source, "/dev/") {
		return ""
	}
	device, err := filepath.EvalSymlinks(h.path(source))
	if err != nil {
		return ""
	}
	name := filepath.Base(device)
	if h.text("sys/class/block", name, "dev") == "" {
		return ""
	}
	return name
}

// deviceFile is the path of a disk's block device.
func (h *Host) deviceFile(name string) (string, error) {
	if !h.isDisk(name) {
		return "", fmt.Errorf("%q is no disk of this machine: %w", name, os.ErrNotExist)
	}
	return h.path("dev", name), nil
}
