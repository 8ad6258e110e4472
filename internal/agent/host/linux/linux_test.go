//go:build linux

package linux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
)

const (
	sda = "pci0/ata1/block/sda"
	sdb = "pci0/ata2/block/sdb"
)

func TestTopology(t *testing.T) {
	t.Parallel()
	disks, err := machine(t).host().Topology(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range disks {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"sda", "sdb", "nvme0n1"}) {
		t.Fatalf("disks %v", names)
	}
	a, b, n := disks[0], disks[1], disks[2]
	if a.Serial != "S3X1" || a.WWN != "naa.55cd2e4" || a.Model != "INTEL SSD" || a.Size != 1<<30 || a.SectorSize != 512 || a.ReadOnly || a.Removable ||
		!slices.Equal(a.ByID, []string{"ata-INTEL_S3X1"}) || len(a.Parts) != 2 || a.Parts[1].Name != "sda2" || a.Parts[0].Offset != 1<<20 || a.Parts[0].Size != 2<<20 {
		t.Errorf("sda: %+v", a)
	}
	if b.Serial != "S3X2" || b.WWN != "0x55cd2e5" || b.Model != "UDEV" || !b.ReadOnly || !b.Removable {
		t.Errorf("sdb: %+v", b)
	}
	if n.Serial != "NV1" || n.WWN != "eui.0025" || len(n.Holders) != 0 {
		t.Errorf("nvme0n1: %+v", n)
	}
}

func TestHolders(t *testing.T) {
	t.Parallel()
	disks, err := machine(t).host().Topology(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"sda", "sdb"} {
		want := []api.Holder{
			{Kind: api.HolderSwap, Name: "/mnt/swap file", Device: "dm-1", Detail: "file"},
			{Kind: api.HolderMount, Name: "/mnt/a b", Device: "md0p1", Detail: "xfs"},
			{Kind: api.HolderMount, Name: "/mnt", Device: "dm-1", Detail: "ext4"},
			{Kind: api.HolderMD, Name: "md0", Device: name + "1", Detail: "raid1"},
			{Kind: api.HolderDM, Name: "crypt", Device: "dm-0", Detail: "CRYPT-LUKS2-x"},
			{Kind: api.HolderLVM, Name: "my-vg/root", Device: "md1", Detail: "LVM-abc"},
			{Kind: api.HolderMD, Name: "md1", Device: name + "2", Detail: "raid1"},
		}
		if !slices.Equal(disks[i].Holders, want) {
			t.Errorf("%s: holders\n%+v, want\n%+v", name, disks[i].Holders, want)
		}
	}
}

func TestContainersGoLast(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.block(sda, "8:0", nil)
	tr.block("virtual/block/md126", "9:126", map[string]string{"md/level": "container\n"})
	tr.block("virtual/block/md127", "9:127", map[string]string{"md/level": "raid1"})
	tr.on("md126", "sda")
	tr.on("md127", "sda")
	tr.file("proc/self/mountinfo", "")
	disks, err := tr.host().Topology(t.Context())
	if err != nil || len(disks) != 1 || len(disks[0].Holders) != 2 || disks[0].Holders[1].Name != "md126" {
		t.Errorf("%+v, %v", disks, err)
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	const overlay = "1 1 0:30 / / rw - overlay overlay rw,lowerdir=/lower,upperdir=/cow/up,workdir=/cow/work"
	for name, tt := range map[string]struct {
		mounts []string
		loop   string // backing file of loop0
		inRAM  bool
		disks  []string
	}{
		"initramfs": {[]string{"1 1 0:2 / / rw - rootfs rootfs rw"}, "", true, nil},
		"tmpfs":     {[]string{"1 1 0:2 / / rw - tmpfs tmpfs rw"}, "", true, nil},
		"nfs":       {[]string{"1 1 0:2 / / rw - nfs 10.0.0.1:/rescue rw"}, "", true, nil},
		"disk":      {[]string{"1 1 8:1 / / rw - ext4 /dev/sda1 rw"}, "", false, []string{"sda"}},
		"array":     {[]string{"1 1 259:9 / / rw - ext4 /dev/md0p1 rw"}, "", false, []string{"sda", "sdb"}},
		"lvm":       {[]string{"1 1 253:0 / / rw - ext4 /dev/mapper/my--vg-root rw"}, "", false, []string{"sda", "sdb"}},
		"mounted over": {[]string{"1 1 0:2 / / rw - rootfs rootfs rw", "2 1 8:1 / / rw - ext4 /dev/sda1 rw"}, "",
			false, []string{"sda"}},
		"rescue with a mounted disk": {[]string{"1 1 0:2 / / rw - tmpfs tmpfs rw", "2 1 8:1 / /mnt rw - ext4 /dev/sda1 rw"}, "", true, nil},
		"live system in RAM": {[]string{overlay, "2 1 7:0 / /lower ro - squashfs /dev/loop0 ro", "3 1 0:31 / /cow rw - tmpfs tmpfs rw",
			"4 1 0:32 / /run/live rw - tmpfs tmpfs rw"}, "/run/live/fs.squashfs", true, nil},
		"live system on a disk": {[]string{overlay, "2 1 7:0 / /lower ro - squashfs /dev/loop0 ro", "3 1 0:31 / /cow rw - tmpfs tmpfs rw",
			"4 1 8:17 / /run/live rw - vfat /dev/sdb1 rw"}, "/run/live/fs.squashfs", false, []string{"sdb"}},
		"changes on a disk": {[]string{overlay, "2 1 7:0 / /lower ro - squashfs /dev/loop0 ro", "3 1 8:2 / /cow rw - ext4 /dev/sda2 rw",
			"4 1 0:32 / /run/live rw - tmpfs tmpfs rw"}, "/run/live/fs.squashfs", false, []string{"sda"}},
		"layers out of sight, no disk in use": {[]string{overlay}, "/gone/fs.squashfs", true, nil},
		"layers out of sight, a disk in use": {[]string{overlay, "4 1 8:17 / /media rw - vfat /dev/sdb1 rw"}, "/gone/fs.squashfs",
			false, []string{"sdb"}},
		"btrfs":              {[]string{"1 1 0:40 / / rw - btrfs /dev/sda2 rw"}, "", false, []string{"sda"}},
		"unknown filesystem": {[]string{"1 1 0:40 / / rw - zfs rpool/root rw"}, "", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := machine(t)
			if tt.loop != "" {
				tr.file("sys/devices/virtual/block/loop0/loop/backing_file", tt.loop+"\n")
			}
			tr.file("proc/self/mountinfo", strings.Join(tt.mounts, "\n"))
			root, err := tr.host().root()
			if err != nil || root.InRAM != tt.inRAM || !slices.Equal(root.Disks, tt.disks) {
				t.Errorf("got %+v, %v", root, err)
			}
		})
	}
}

// TestLoopDevicesHideTheRest makes sure that a test can never reach a disk.
func TestLoopDevicesHideTheRest(t *testing.T) {
	t.Parallel()
	tr := machine(t)
	tr.file("sys/devices/virtual/block/loop0/loop/backing_file", "/tmp/SERIAL-1.img\n")
	h := New(Options{Root: tr.root, LoopDevices: []string{"loop0", "sda", "loop5"}})
	disks, err := h.Topology(t.Context())
	if err != nil || len(disks) != 1 || disks[0].Name != "loop0" || disks[0].Serial != "SERIAL-1" {
		t.Fatalf("%+v, %v", disks, err)
	}
	for _, name := range []string{"sda", "nvme0n1", "loop5", "../sda", ""} {
		if _, err := h.OpenDisk(t.Context(), name, true); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q could be opened: %v", name, err)
		}
	}
}

// TestOpenWantsTheDevice has a file where the block device should be.
func TestOpenWantsTheDevice(t *testing.T) {
	t.Parallel()
	tr := machine(t)
	if _, err := tr.host().OpenDisk(t.Context(), "sda", false); err == nil {
		t.Error("a plain file was taken for a disk")
	}
	if _, err := tr.host().OpenDisk(t.Context(), "sda1", false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a partition was taken for a disk: %v", err)
	}
	if err := os.Remove(filepath.Join(tr.root, "dev/sda")); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.host().OpenDisk(t.Context(), "sda", true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a device file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(tr.root, "dev/sda")); err == nil {
		t.Error("opening a disk made a file")
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.file("proc/sys/kernel/sysrq", "0")
	tr.file("proc/sysrq-trigger", "")
	h := tr.host()
	if err := h.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.text("proc/sys/kernel/sysrq") != "1" || h.text("proc/sysrq-trigger") != "b" {
		t.Errorf("sysrq %q, last command %q", h.text("proc/sys/kernel/sysrq"), h.text("proc/sysrq-trigger"))
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	h := New(Options{})
	out, err := h.Run(t.Context(), "sh", "-c", "echo out; echo err >&2; exit 3")
	if err != nil || out.Exit != 3 || !strings.Contains(out.Tail, "out") || !strings.Contains(out.Tail, "err") {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := h.Run(t.Context(), "no-such-tool"); err == nil {
		t.Error("a missing tool is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Run(ctx, "sleep", "60"); err == nil {
		t.Error("a killed tool is no error")
	}
}

func TestParseMount(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", " - ", "1 2 3 - x y z", "22 1 8:1 / /mnt rw,relatime ext4 /dev/sda1 rw"} {
		if m, ok := parseMount(line); ok {
			t.Errorf("%q: %+v", line, m)
		}
	}
	m, ok := parseMount(`22 1 8:1 / /m\040\134x rw shared:1 master:2 - ext4 /dev/s\011a rw,lowerdir+=/a,lowerdir+=/b`)
	if !ok || m.point != `/m \x` || m.source != "/dev/s\ta" || m.options["lowerdir+"] != "/a:/b" {
		t.Errorf("%+v, %v", m, ok)
	}
}

// TestLeaveLogin: a process moves in every hierarchy that there is, and no
// file is made where there is none.
func TestLeaveLogin(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.file("sys/fs/cgroup/unified/cgroup.procs", "")
	tr.file("sys/fs/cgroup/systemd/cgroup.procs", "")
	h := tr.host()
	h.leaveLogin(4711)
	for file, want := range map[string]string{"unified/cgroup.procs": "4711", "systemd/cgroup.procs": "4711", "cgroup.procs": ""} {
		if got := h.text("sys/fs/cgroup", file); got != want {
			t.Errorf("%s holds %q, want %q", file, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(tr.root, "sys/fs/cgroup/cgroup.procs")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unified hierarchy's file was made: %v", err)
	}
}
