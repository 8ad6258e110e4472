package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/run"
)

// edge is how much is zeroed at both ends of a disk and of each partition.
// All superblocks that a system looks for lie there: the furthest are ZFS's
// labels (the last 768 KiB) and md 0.90's (the last 128 KiB).
const edge = 1 << 20

// DiskPrep makes the plan that takes the handed-over disks to blank ones:
// holders from the top down, then what partitions hold, then both ends of the
// disks. Anything that speaks against it is NeedsOperator, all of it at once,
// and there is no plan then.
func DiskPrep(inv api.Inventory, spec api.DiskPrepSpec) (Plan, error) {
	handed, err := handedOver(inv.Disks, spec)
	if err != nil {
		return Plan{}, err
	}
	kept := slices.DeleteFunc(slices.Clone(inv.Disks), func(d api.Disk) bool { return contains(handed, d) })
	if err := refuse(inv, handed, kept); err != nil {
		return Plan{}, err
	}
	p := Plan{Disks: handed, Steps: release(handed)}
	for _, d := range handed {
		p.Steps = append(p.Steps, erase(d)...)
	}
	return p, nil
}

// handedOver resolves the disks of the spec, the system disk first.
func handedOver(disks []api.Disk, spec api.DiskPrepSpec) ([]api.Disk, error) {
	var handed []api.Disk
	var not refusals
	for _, want := range append([]run.Disk{spec.System}, spec.Secondary...) {
		d, err := Resolve(disks, want)
		switch {
		case err != nil:
			not.add(err)
		case contains(handed, d):
			not.because("name each disk once", "the disk %s is handed over twice", Describe(d))
		default:
			handed = append(handed, d)
		}
	}
	return handed, not.err()
}

func contains(disks []api.Disk, d api.Disk) bool {
	return slices.ContainsFunc(disks, func(x api.Disk) bool { return x.Name == d.Name })
}

// release takes the holders down, the outermost first.
func release(disks []api.Disk) []Step {
	type item struct {
		step   Step
		height int
	}
	var items []item
	for _, d := range disks {
		for i, h := range d.Holders {
			step := Step{Action: releasing(h.Kind), Target: h.Name}
			at := slices.IndexFunc(items, func(x item) bool { return x.step.Action == step.Action && x.step.Target == step.Target })
			if at < 0 {
				at = len(items)
				items = append(items, item{step: step})
			}
			// What lies on top of a holder uses all its disks too, so it
			// stands before it in each of their lists: the greatest distance
			// from a list's end orders them all.
			items[at].height = max(items[at].height, len(d.Holders)-i)
		}
	}
	slices.SortStableFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(rank(a.step), rank(b.step)), cmp.Compare(b.height, a.height))
	})
	steps := make([]Step, len(items))
	for i, x := range items {
		steps[i] = x.step
	}
	return steps
}

// rank puts swap first, which may be a file, then mounts, those below others
// first; both always lie on top of the devices.
func rank(s Step) int {
	switch s.Action {
	case SwapOff:
		return -maxPath - 1
	case Unmount:
		return -min(len(s.Target), maxPath)
	default:
		return 0
	}
}

// maxPath is the kernel's PATH_MAX.
const maxPath = 4096

func releasing(kind api.HolderKind) Action {
	switch kind {
	case api.HolderMount:
		return Unmount
	case api.HolderSwap:
		return SwapOff
	case api.HolderLVM:
		return Deactivate
	case api.HolderMD:
		return Stop
	default:
		return Remove
	}
}

// volumeGroup is the group of an active logical volume, named group/volume.
func volumeGroup(h api.Holder) string {
	group, _, _ := strings.Cut(h.Name, "/")
	return group
}

// erase clears a disk: first what the partitions hold, while the table still
// says where they are, then the table itself. Run again after any
// interruption it finds what is left.
func erase(d api.Disk) []Step {
	if Empty(d) {
		return nil
	}
	var steps []Step
	var ranges []Range
	var clears []string
	for _, p := range d.Parts {
		ranges = append(ranges, ends(int64(p.Offset), int64(p.Size))...)
		for _, s := range p.Signatures {
			ranges = append(ranges, around(int64(p.Offset+s.Offset)))
		}
		clears = append(clears, partitionText(p))
	}
	disk := d
	if ranges = tidy(ranges, d); len(ranges) > 0 {
		steps = append(steps, Step{Action: Wipe, Target: "the partitions of " + Describe(d), Disk: &disk, Ranges: ranges, Clears: clears})
	}
	ranges, clears = ends(0, int64(d.Size)), nil
	for _, s := range d.Signatures {
		ranges = append(ranges, around(int64(s.Offset)))
		clears = append(clears, signatureText(s))
	}
	return append(steps, Step{Action: Blank, Target: Describe(d), Disk: &disk, Ranges: tidy(ranges, d), Clears: slices.Compact(clears)})
}

// Empty reports whether a disk is what disk-prep leaves behind: not used,
// without partitions, signatures and residue, holding a blank GPT.
func Empty(d api.Disk) bool {
	return d.Blank && !d.Residue && len(d.Parts) == 0 && len(d.Holders) == 0 && !slices.ContainsFunc(d.Signatures, foreign)
}

// foreign tells signatures apart from those of the blank table.
func foreign(s api.Signature) bool { return s.Type != "gpt" && s.Type != "PMBR" }

func partitionText(p api.Partition) string {
	text := fmt.Sprintf("partition %d", p.Number)
	if p.Label != "" {
		text += " " + p.Label
	}
	for _, s := range p.Signatures {
		text += " " + signatureText(s)
	}
	return text
}

func signatureText(s api.Signature) string {
	if s.Label != "" {
		return s.Type + " " + s.Label
	}
	return s.Type
}
