package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
)

// smallestDisk is the least that is taken for a disk.
const smallestDisk = 16 << 20

// refusals collects what speaks against a plan.
type refusals struct{ all []*fault.Error }

func (r *refusals) because(remedy, format string, args ...any) {
	r.all = append(r.all, fault.Operator(remedy, format, args...))
}

func (r *refusals) add(err error) {
	if e, ok := fault.As(err); ok {
		r.all = append(r.all, e)
		return
	}
	r.because("", "%w", err)
}

func (r *refusals) err() error {
	switch len(r.all) {
	case 0:
		return nil
	case 1:
		return r.all[0]
	}
	texts := make([]string, len(r.all))
	for i, e := range r.all {
		texts[i] = fmt.Sprintf("(%d) %s", i+1, e.Error())
	}
	return fault.Operator("nothing was touched", "%d things speak against it: %s", len(texts), strings.Join(texts, "; "))
}

// refuse looks for everything that forbids to erase the handed-over disks.
func refuse(inv api.Inventory, handed, kept []api.Disk) error {
	var not refusals
	refuseRoot(&not, inv.Root, handed)
	for _, d := range kept {
		refuseTalos(&not, d)
	}
	refuseSpans(&not, handed, kept)
	refuseTools(&not, inv.Tools, handed)
	for _, d := range handed {
		refuseOdd(&not, d)
	}
	return not.err()
}

// refuseRoot keeps a running system from being erased below itself.
func refuseRoot(not *refusals, root api.Root, handed []api.Disk) {
	const remedy = "boot the provider's rescue system, whose root is in RAM"
	if !root.InRAM && len(root.Disks) == 0 {
		not.because(remedy, "it cannot be told what the root filesystem (%s on %s) lies on", root.FSType, root.Source)
	}
	for _, d := range handed {
		isRoot := func(h api.Holder) bool { return h.Kind == api.HolderMount && h.Name == "/" }
		if slices.Contains(root.Disks, d.Name) || slices.ContainsFunc(d.Holders, isRoot) {
			not.because(remedy, "the running system lies on the disk %s", Describe(d))
		}
	}
}

// refuseTalos protects the next boot: Talos takes META, STATE and EPHEMERAL
// from the first disk that has them, a stale one on a kept disk included
// (seen with Talos 1.13.8).
func refuseTalos(not *refusals, d api.Disk) {
	for _, p := range d.Parts {
		switch p.Label {
		case "META", "STATE", "EPHEMERAL":
			not.because("hand the disk over (secondaryDisks: blank) or remove that partition yourself",
				"the kept disk %s holds partition %d named %s of an older Talos, which would take the new node over", Describe(d), p.Number, p.Label)
		}
	}
}

// refuseSpans protects kept disks from losing half of an array or group,
// whether it is active or only there on the disks.
func refuseSpans(not *refusals, handed, kept []api.Disk) {
	ours := map[string]bool{}
	for _, d := range handed {
		for what := range spans(d) {
			ours[what] = true
		}
	}
	for _, d := range kept {
		var shared []string
		for what, name := range spans(d) {
			if ours[what] && !slices.Contains(shared, name) {
				shared = append(shared, name)
			}
		}
		slices.Sort(shared)
		for _, name := range shared {
			not.because("hand that disk over as well, or take it out of the set yourself",
				"%s lies on the kept disk %s too", name, Describe(d))
		}
	}
}

// spans maps what can lie on several disks to its name for people.
func spans(d api.Disk) map[string]string {
	out := map[string]string{}
	for _, h := range d.Holders {
		switch h.Kind {
		case api.HolderMD, api.HolderDM:
			out[string(h.Kind)+" "+h.Name] = string(h.Kind) + " " + h.Name
		case api.HolderLVM:
			out["lvm "+volumeGroup(h)] = "volume group " + volumeGroup(h)
		case api.HolderMount, api.HolderSwap, api.HolderOther: // are on what lies on the disk
		}
	}
	signatures := slices.Clone(d.Signatures)
	for _, p := range d.Parts {
		signatures = append(signatures, p.Signatures...)
	}
	for _, s := range signatures {
		if s.Set != "" {
			out[s.Type+" "+s.Set] = "the set " + strings.TrimSpace(s.Label+" "+s.Set) + " (" + s.Type + ")"
		}
	}
	return out
}

// refuseTools asks for the helpers before anything is touched.
func refuseTools(not *refusals, tools []string, handed []api.Disk) {
	needed := map[string][]string{}
	for _, s := range release(handed) {
		if tool := s.Tool(); tool != nil && !slices.Contains(tools, tool[0]) {
			needed[tool[0]] = append(needed[tool[0]], s.Target)
		}
	}
	for _, tool := range []string{"lvm", "dmsetup", "mdadm"} {
		if targets := needed[tool]; targets != nil {
			not.because("install it in the rescue system or use a rescue system that has it",
				"%s is needed to release %s and is not there", tool, strings.Join(targets, ", "))
		}
	}
}

// refuseOdd names disks that cannot hold a blank table, and holders that
// cannot be taken down.
func refuseOdd(not *refusals, d api.Disk) {
	if d.SectorSize != 512 && d.SectorSize != 4096 {
		not.because("hand over another disk", "the disk %s has sectors of %d bytes, neither 512 nor 4096", Describe(d), d.SectorSize)
	} else if d.Size < smallestDisk || d.Size%uint64(d.SectorSize) != 0 {
		not.because("hand over another disk", "the disk %s (%d bytes) is too small or no whole number of sectors", Describe(d), d.Size)
	}
	for _, h := range d.Holders {
		if h.Kind == api.HolderOther {
			not.because("release it by hand and try again", "%s holds %s of the disk %s in a way that cannot be released", h.Name, h.Device, Describe(d))
		}
	}
}
