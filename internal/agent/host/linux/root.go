//go:build linux

package linux

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// root tells what the root filesystem lies on. It is in RAM only when every
// layer below it was followed and none of the machine's disks was met.
func (h *Host) root() (api.Root, error) {
	mounts, err := h.mounts()
	if err != nil {
		return api.Root{}, err
	}
	m, found := covering(mounts, "/")
	if !found {
		return api.Root{}, nil
	}
	t := &tracer{host: h, mounts: mounts, disks: map[string]bool{}, seen: map[string]bool{}}
	t.mount(m)
	root := api.Root{FSType: m.fsType, Source: m.source}
	for name := range t.disks {
		root.Disks = append(root.Disks, name)
	}
	slices.Sort(root.Disks)
	root.InRAM = len(root.Disks) == 0 && !t.lost
	return root, nil
}

// tracer follows a filesystem down to disks.
type tracer struct {
	host   *Host
	mounts []mount
	disks  map[string]bool
	seen   map[string]bool
	lost   bool // a layer could not be followed
}

func (t *tracer) mount(m mount) {
	if t.seen["mount "+m.device+" "+m.point] {
		return
	}
	t.seen["mount "+m.device+" "+m.point] = true
	switch m.fsType {
	case "rootfs", "tmpfs", "ramfs", "devtmpfs":
	case "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "afs":
	case "overlay":
		t.overlay(m)
	default:
		t.device(m)
	}
}

// device follows a filesystem on a block device; btrfs shows a device number
// of its own and the real one as its source.
func (t *tracer) device(m mount) {
	name := t.host.byNumber(m.device)
	if name == "" {
		name = t.host.bySource(m.source)
	}
	if name == "" {
		t.lost = true
		return
	}
	t.block(name)
}

// overlay follows all layers. A layer that is not found again, because the
// initramfs had it elsewhere, may lie on any disk that is in use.
func (t *tracer) overlay(m mount) {
	var layers []string
	for _, key := range []string{"lowerdir", "lowerdir+", "datadir+", "upperdir", "workdir"} {
		layers = append(layers, strings.FieldsFunc(m.options[key], func(r rune) bool { return r == ':' })...)
	}
	for _, dir := range layers {
		t.file(dir, m)
	}
}

// file follows the filesystem that a path lies on, asked for by a mount.
func (t *tracer) file(path string, asking mount) {
	under, found := covering(t.mounts, filepath.Clean(path))
	if !found || under.device == asking.device {
		t.anything()
		return
	}
	t.mount(under)
}

// anything takes every disk in use into account. When there is none, what
// could not be followed is in RAM.
func (t *tracer) anything() {
	if t.seen["anything"] {
		return
	}
	t.seen["anything"] = true
	for _, m := range t.mounts {
		if m.fsType != "overlay" && t.host.byNumber(m.device) != "" {
			t.mount(m)
		}
	}
	for _, name := range t.host.blocks() {
		if t.host.text("sys/block", name, "loop/backing_file") != "" {
			t.block(name)
		}
	}
}

// block follows a block device to disks.
func (t *tracer) block(name string) {
	if t.seen["block "+name] {
		return
	}
	t.seen["block "+name] = true
	disk := t.host.wholeDisk(name)
	if t.host.isDisk(disk) {
		t.disks[disk] = true
		return
	}
	if file := t.host.text("sys/block", disk, "loop/backing_file"); file != "" {
		t.file(file, mount{device: t.host.text("sys/class/block", disk, "dev")})
		return
	}
	for _, slave := range t.host.names("sys/class/block", disk, "slaves") {
		t.block(slave)
	}
}
