//go:build linux

package linux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a /sys, /proc and /dev made of files and links.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T) tree { return tree{t, t.TempDir()} }

func (tr tree) host() *Host { return New(Options{Root: tr.root}) }

func (tr tree) file(path, text string) {
	tr.t.Helper()
	path = filepath.Join(tr.root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr tree) link(path, target string) {
	tr.t.Helper()
	path = filepath.Join(tr.root, path)
	relative, err := filepath.Rel(filepath.Dir(path), filepath.Join(tr.root, target))
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(relative, path)); err != nil {
		tr.t.Fatal(err)
	}
}

// block adds a whole block device at a path below /sys/devices.
func (tr tree) block(device, number string, attributes map[string]string) {
	name := filepath.Base(device)
	dir := "sys/devices/" + device
	tr.file(dir+"/dev", number)
	tr.file(dir+"/size", "2097152")
	tr.file(dir+"/queue/logical_block_size", "512")
	for key, value := range attributes {
		tr.file(dir+"/"+key, value)
	}
	tr.link("sys/block/"+name, dir)
	tr.link("sys/class/block/"+name, dir)
	tr.link("sys/dev/block/"+number, dir)
	tr.file("dev/"+name, "")
}

// part adds a partition of a device.
func (tr tree) part(device, name, number, index string) {
	dir := "sys/devices/" + device + "/" + name
	tr.file(dir+"/dev", number)
	tr.file(dir+"/partition", index)
	tr.file(dir+"/start", "2048")
	tr.file(dir+"/size", "4096")
	tr.link("sys/class/block/"+name, dir)
	tr.link("sys/dev/block/"+number, dir)
	tr.file("dev/"+name, "")
}

// on puts a device on top of another.
func (tr tree) on(upper, lower string) {
	tr.file("sys/class/block/"+lower+"/holders/"+upper, "")
	tr.file("sys/class/block/"+upper+"/slaves/"+lower, "")
}

// machine has two disks with md arrays, LVM on one, and much that is no disk.
func machine(t *testing.T) tree {
	tr := newTree(t)
	tr.block(sda, "8:0", map[string]string{"device/model": "INTEL SSD  \n", "device/wwid": "naa.55cd2e4\n", "device/vpd_pg80": "\x00\x80\x00\x06 S3X1 ", "removable": "0", "ro": "0"})
	tr.block(sdb, "8:16", map[string]string{"device/wwid": "t10.ATA     INTEL   S3X2", "removable": "1", "ro": "1"})
	tr.file("run/udev/data/b8:16", "S:disk/by-id/x\nE:ID_SERIAL_SHORT=S3X2\nE:ID_WWN=0x55cd2e5\nE:ID_MODEL=UDEV\n")
	tr.block("pci0/nvme/nvme0/nvme0n1", "259:0", map[string]string{"device/serial": "NV1  ", "wwid": "eui.0025", "device/model": "NVME"})
	tr.block("pci0/nvme/nvme0/nvme0c0n1", "259:1", map[string]string{"hidden": "1"})
	tr.block("pci0/ata3/block/sr0", "11:0", map[string]string{"device/type": "5"})
	tr.block("virtual/block/zram0", "252:0", nil)
	tr.block("virtual/block/loop0", "7:0", nil)
	tr.block("pci0/ata4/block/sdc", "8:32", map[string]string{"size": "0"})
	for _, p := range []struct{ device, name, number, index string }{
		{sda, "sda1", "8:1", "1"}, {sda, "sda2", "8:2", "2"}, {sdb, "sdb1", "8:17", "1"}, {sdb, "sdb2", "8:18", "2"},
	} {
		tr.part(p.device, p.name, p.number, p.index)
	}
	tr.block("virtual/block/md0", "9:0", map[string]string{"md/level": "raid1"})
	tr.part("virtual/block/md0", "md0p1", "259:9", "1")
	tr.block("virtual/block/md1", "9:1", map[string]string{"md/level": "raid1"})
	tr.block("virtual/block/dm-0", "253:0", map[string]string{"dm/name": "my--vg-root", "dm/uuid": "LVM-abc"})
	tr.block("virtual/block/dm-1", "253:1", map[string]string{"dm/name": "crypt", "dm/uuid": "CRYPT-LUKS2-x"})
	for upper, lowers := range map[string][]string{"md0": {"sda1", "sdb1"}, "md1": {"sda2", "sdb2"}, "dm-0": {"md1"}, "dm-1": {"dm-0"}} {
		for _, lower := range lowers {
			tr.on(upper, lower)
		}
	}
	tr.link("dev/disk/by-id/ata-INTEL_S3X1", "dev/sda")
	tr.link("dev/disk/by-id/ata-INTEL_S3X1-part1", "dev/sda1")
	tr.file("proc/swaps", "Filename Type Size Used Priority\n/mnt/swap\\040file file 1 0 -2\n")
	tr.file("proc/self/mountinfo", strings.Join([]string{
		"1 1 0:2 / / rw - rootfs rootfs rw",
		"22 1 253:1 / /mnt rw,relatime - ext4 /dev/mapper/crypt rw",
		`23 22 259:9 / /mnt/a\040b rw - xfs /dev/md0p1 rw`,
	}, "\n"))
	return tr
}
