//go:build linux

package linux

import (
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// users finds what uses a disk.
type users struct {
	host   *Host
	mounts []mount
	swaps  []string
}

// of lists the holders of a disk and its partitions, outermost first: swap,
// which may be a file on a mount, then mounts, the last one first, then
// devices.
func (u *users) of(d api.Disk) []api.Holder {
	w := &walk{users: u}
	w.above(d.Name)
	for _, p := range d.Parts {
		w.above(p.Name)
	}
	// An array of external metadata and its container both sit on the disks:
	// the container can be stopped only when its arrays are.
	slices.SortStableFunc(w.stack, func(a, b api.Holder) int { return rank(a) - rank(b) })
	return slices.Concat(u.swapsOn(w.nodes), u.mountsOn(w.nodes), w.stack)
}

// walk goes up from a disk through the devices on top of it.
type walk struct {
	*users
	nodes []string     // all devices met, and their partitions
	stack []api.Holder // outermost first, each once
}

func (w *walk) above(node string) {
	if slices.Contains(w.nodes, node) {
		return
	}
	w.nodes = append(w.nodes, node)
	for _, name := range w.host.names("sys/class/block", node, "holders") {
		w.above(name)
		for _, p := range w.host.partitions(name) {
			w.above(p.Name)
		}
		h := w.holder(name, node)
		if !slices.ContainsFunc(w.stack, func(x api.Holder) bool { return x.Kind == h.Kind && x.Name == h.Name }) {
			w.stack = append(w.stack, h)
		}
	}
}

func rank(h api.Holder) int {
	if h.Kind == api.HolderMD && h.Detail == "container" {
		return 1
	}
	return 0
}

func (u *users) holder(name, on string) api.Holder {
	h := api.Holder{Kind: api.HolderOther, Name: name, Device: on}
	switch {
	case strings.HasPrefix(name, "md"):
		h.Kind = api.HolderMD
		h.Detail = first(u.host.text("sys/block", name, "md/level"), "container")
	case strings.HasPrefix(name, "dm-"):
		h.Kind, h.Name = api.HolderDM, u.host.text("sys/block", name, "dm/name")
		h.Detail = u.host.text("sys/block", name, "dm/uuid")
		if strings.HasPrefix(h.Detail, "LVM-") {
			h.Kind, h.Name = api.HolderLVM, volume(h.Name)
		}
	}
	return h
}

// volume turns a device-mapper name into group/volume: LVM doubles the dashes
// of both and appends layers such as -tpool to its inner devices.
func volume(dm string) string {
	const dash = "\x00"
	parts := strings.SplitN(strings.ReplaceAll(dm, "--", dash), "-", 3)
	if len(parts) < 2 {
		return dm
	}
	return strings.ReplaceAll(parts[0]+"/"+parts[1], dash, "-")
}

func (u *users) mountsOn(nodes []string) []api.Holder {
	var out []api.Holder
	for _, m := range slices.Backward(u.mounts) {
		name := u.host.byNumber(m.device)
		if name == "" {
			name = u.host.bySource(m.source)
		}
		if name != "" && slices.Contains(nodes, name) {
			out = append(out, api.Holder{Kind: api.HolderMount, Name: m.point, Device: name, Detail: m.fsType})
		}
	}
	return out
}

// swapsOn names swap devices by their kernel name and swap files by path.
func (u *users) swapsOn(nodes []string) []api.Holder {
	var out []api.Holder
	for _, swap := range u.swaps {
		name := u.host.bySource(swap)
		h := api.Holder{Kind: api.HolderSwap, Name: name, Device: name}
		if name == "" {
			m, found := covering(u.mounts, swap)
			if !found {
				continue
			}
			h = api.Holder{Kind: api.HolderSwap, Name: swap, Device: u.host.byNumber(m.device), Detail: "file"}
		}
		if slices.Contains(nodes, h.Device) {
			out = append(out, h)
		}
	}
	return out
}
