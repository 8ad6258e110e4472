package simulated

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// stack is what the kernel of a rescue boot has put on top of the disks: the
// md arrays whose superblocks it found, and LVM on them. It is guarded by
// boot.mu.
type stack struct {
	arrays  []*array
	volumes []*volume
}

type array struct {
	name    string // md127
	uuid    string
	title   string // delivered:root
	members []member
}

// member is a partition of a disk, by slot index and number.
type member struct{ slot, part int }

type volume struct {
	group, name string
	on          *array
}

func (v *volume) path() string { return v.group + "/" + v.name }

// assemble does what udev and mdadm do while rescue boots: every array whose
// superblocks lie on the disks is started, under names from md127 down, and
// volume groups on them are activated.
func (b *boot) assemble() {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &stack{}
	for _, slot := range b.order {
		d := b.m.disks[slot]
		for i, p := range layout.Read(d.f, d.spec.Size) {
			uuid, title := mdMember(d, p.Offset)
			if uuid == "" {
				continue
			}
			a := s.array(uuid, title)
			a.members = append(a.members, member{slot, i + 1})
			if hasLVMLabel(d, p.Offset) && !s.hasVolume(a) {
				s.volumes = append(s.volumes, &volume{group: "vg0", name: "root", on: a})
			}
		}
	}
	b.stack = s
}

func (s *stack) array(uuid, title string) *array {
	for _, a := range s.arrays {
		if a.uuid == uuid {
			return a
		}
	}
	a := &array{name: fmt.Sprintf("md%d", 127-len(s.arrays)), uuid: uuid, title: title}
	s.arrays = append(s.arrays, a)
	return a
}

func (s *stack) hasVolume(a *array) bool {
	return slices.ContainsFunc(s.volumes, func(v *volume) bool { return v.on == a })
}

// inUse reports whether anything is on top of the disk with this slot index.
func (b *boot) inUse(slot int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.stack.arrays, func(a *array) bool { return a.on(slot) })
}

func (a *array) on(slot int) bool {
	return slices.ContainsFunc(a.members, func(m member) bool { return m.slot == slot })
}

// holders lists what is on top of a disk, outermost first.
func (b *boot) holders(slot int) []api.Holder {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []api.Holder
	for _, v := range b.stack.volumes {
		if v.on.on(slot) {
			all = append(all, api.Holder{Kind: api.HolderLVM, Name: v.path(), Device: v.on.name, Detail: v.group})
		}
	}
	for _, a := range b.stack.arrays {
		for _, m := range a.members {
			if m.slot == slot {
				all = append(all, api.Holder{Kind: api.HolderMD, Name: a.name, Device: b.device(slot, m.part), Detail: "raid1"})
			}
		}
	}
	return all
}

// runTool is mdadm, lvm and dmsetup, as far as the agent uses them.
func (b *boot) runTool(args []string) (exit int, output string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	words := operands(args)
	switch {
	case args[0] == "mdadm" && (slices.Contains(args, "--stop") || slices.Contains(args, "-S")):
		return b.stack.stopArrays(words)
	case len(words) > 0 && (words[0] == "vgchange" || words[0] == "lvchange") && deactivates(args):
		return b.stack.deactivate(words[1:])
	case args[0] == "dmsetup" && len(words) > 2 && words[1] == "remove":
		return b.stack.removeDM(words[2:])
	}
	return 1, "simulated " + strings.Join(args, " ") + ": the lab's machine does not know this"
}

// operands leaves out options; lvm may be called as `lvm lvchange`.
func operands(args []string) []string {
	var words []string
	for i, a := range args {
		option := strings.HasPrefix(a, "-")
		value := i > 0 && a == "n" && (args[i-1] == "-a" || args[i-1] == "--activate")
		if !option && !value {
			words = append(words, a)
		}
	}
	if len(words) > 0 && (words[0] == "lvm" || words[0] == "mdadm") {
		words = words[1:]
	}
	return words
}

func deactivates(args []string) bool {
	for i, a := range args {
		if a == "-an" || a == "--activate=n" || a == "n" && i > 0 && (args[i-1] == "-a" || args[i-1] == "--activate") {
			return true
		}
	}
	return false
}

func (s *stack) stopArrays(devices []string) (int, string) {
	for _, device := range devices {
		name := strings.TrimPrefix(device, "/dev/")
		i := slices.IndexFunc(s.arrays, func(a *array) bool { return a.name == name || "md/"+a.title == name })
		if i < 0 {
			return 1, "mdadm: error opening " + device + ": No such file or directory"
		}
		if s.hasVolume(s.arrays[i]) {
			return 1, "mdadm: Cannot get exclusive access to " + device + ":Perhaps a running process, mounted filesystem or active volume group?"
		}
		s.arrays = slices.Delete(s.arrays, i, i+1)
	}
	return 0, "mdadm: stopped " + strings.Join(devices, " ")
}

// deactivate takes names of groups or volumes.
func (s *stack) deactivate(names []string) (int, string) {
	for _, name := range names {
		name = strings.TrimPrefix(name, "/dev/")
		before := len(s.volumes)
		s.volumes = slices.DeleteFunc(s.volumes, func(v *volume) bool { return v.group == name || v.path() == name })
		if len(s.volumes) == before {
			return 5, fmt.Sprintf("  Volume group or logical volume %q not found", name)
		}
	}
	return 0, "  0 logical volume(s) now active"
}

func (s *stack) removeDM(names []string) (int, string) {
	for _, name := range names {
		before := len(s.volumes)
		s.volumes = slices.DeleteFunc(s.volumes, func(v *volume) bool { return v.group+"-"+v.name == name })
		if len(s.volumes) == before {
			return 1, "Device " + name + " not found"
		}
	}
	return 0, ""
}
