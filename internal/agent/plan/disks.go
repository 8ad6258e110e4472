// Package plan decides what the agent does: pure functions from an inventory
// to a choice or a list of steps. Nothing here reads or writes a device.
package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
)

// Choose applies a lot's rule to the disks of a machine. Removable and
// read-only disks are never chosen, and neither is one without serial and
// WWN, which could not be found again. None or several is NeedsOperator.
func Choose(disks []api.Disk, rule run.DiskChoice) (api.Disk, error) {
	if err := checkRule(rule); err != nil {
		return api.Disk{}, err
	}
	var found []api.Disk
	for _, d := range disks {
		if fits(d, rule) {
			found = append(found, d)
		}
	}
	if rule.Smallest {
		found = smallest(found)
	}
	switch {
	case len(found) == 0:
		return api.Disk{}, fault.Operator("name one of these in the lot file's systemDisk, and give that with "+run.RetryWithFile+": "+List(disks),
			"no disk of the machine fits the rule %q", Rule(rule))
	case len(found) > 1 && len(distinct(disks, found)) > 0:
		return api.Disk{}, fault.Operator("name one by its serial in the lot file's systemDisk, and give that with "+run.RetryWithFile+": "+List(distinct(disks, found)),
			"the rule %q fits %d disks of the machine", Rule(rule), len(found))
	}
	chosen, err := Resolve(disks, found[0].Identity())
	if others := distinct(disks, disks); err != nil && len(others) > 0 {
		return api.Disk{}, instead(err, "name another disk by its serial in the lot file's systemDisk, with `secondaryDisks: keep` for this node, which leaves the rest alone, "+
			"and give it with "+run.RetryWithFile+": "+List(others))
	}
	return chosen, err
}

// instead gives an error another remedy.
func instead(err error, remedy string) error {
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	return fault.New(f.Class, remedy, "%s", f.Message)
}

// distinct are the found disks that no other disk can be mistaken for.
func distinct(disks, found []api.Disk) []api.Disk {
	return slices.DeleteFunc(slices.Clone(found), func(d api.Disk) bool {
		_, err := Resolve(disks, d.Identity())
		return err != nil
	})
}

// Resolve finds a disk again by identity: serial and WWN, as far as they are
// known, and the size. The kernel name is not looked at, it may change at
// every boot. Not there, ambiguous, or without serial and WWN is
// NeedsOperator.
func Resolve(disks []api.Disk, want run.Disk) (api.Disk, error) {
	if want.Serial == "" && want.WWN == "" {
		return api.Disk{}, fault.Operator("it could not be told from another after a reboot: "+Replace,
			"the disk %s has neither serial nor WWN", describe(want))
	}
	var found []api.Disk
	for _, d := range disks {
		if same(d, want) {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 0:
		return api.Disk{}, fault.Operator("name one that is there by its serial in the lot file's systemDisk and give it with `starter retry LOT NODE --batch LOT.YAML --another-disk`, "+
			"or have the provider put the disk back and give `starter retry LOT NODE --from reboot-rescue`: "+List(disks),
			"the disk %s is not in the machine", describe(want))
	case len(found) > 1:
		return api.Disk{}, fault.Operator("no rule of a lot file can choose between them: "+Replace,
			"%d disks of the machine have one serial, WWN and size and cannot be told apart: %s", len(found), List(found))
	case found[0].ReadOnly || found[0].Removable:
		return api.Disk{}, fault.Operator("name another disk; removable and read-only ones are never written",
			"the disk %s cannot be used", Describe(found[0]))
	}
	return found[0], nil
}

// Secondary picks the disks that a lot hands over beside the system disk:
// none when they are kept, else every one that can be written. A disk that
// could not be found again by identity is NeedsOperator.
func Secondary(disks []api.Disk, system api.Disk, policy run.Secondary) ([]api.Disk, error) {
	if policy == run.Keep {
		return nil, nil
	}
	var out []api.Disk
	for _, d := range disks {
		if d.Name == system.Name || d.Removable || d.ReadOnly || d.Size == 0 {
			continue
		}
		found, err := Resolve(disks, d.Identity())
		if err != nil {
			return nil, instead(err, "set `secondaryDisks: keep` for this node in the lot file, which leaves all disks but the system disk alone, and give it with "+
				run.RetryWithFile+"; to have them erased as well, "+Replace)
		}
		out = append(out, found)
	}
	return out, nil
}

// same compares all that is known of the wanted disk.
func same(d api.Disk, want run.Disk) bool {
	return (want.Serial == "" || d.Serial == want.Serial) &&
		(want.WWN == "" || d.WWN == want.WWN) &&
		(want.Size == 0 || d.Size == want.Size)
}

// checkRule refuses rules that say nothing or contradict themselves.
func checkRule(r run.DiskChoice) error {
	set := 0
	for _, is := range []bool{r.Serial != "", r.WWN != "", r.ByID != "", r.Smallest} {
		if is {
			set++
		}
	}
	sized := r.MinSize > 0 || r.MaxSize > 0
	if set > 1 || set == 0 && !sized || sized && set == 1 && !r.Smallest || r.MaxSize > 0 && r.MinSize > r.MaxSize {
		return fault.Operator("give exactly one of serial, wwn, byId and smallest; minSize and maxSize (minSize first) stand alone or with smallest",
			"the disk rule %q is not one rule", Rule(r))
	}
	return nil
}

func fits(d api.Disk, r run.DiskChoice) bool {
	switch {
	case d.Removable || d.ReadOnly || d.Size == 0:
		return false
	case r.Serial != "":
		return d.Serial == r.Serial
	case r.WWN != "":
		return d.WWN != "" && plainWWN(d.WWN) == plainWWN(r.WWN)
	case r.ByID != "":
		return slices.Contains(d.ByID, path.Base(r.ByID))
	}
	return d.Size >= r.MinSize && (r.MaxSize == 0 || d.Size <= r.MaxSize)
}

// plainWWN takes away how udev, sysfs and data sheets write the same number.
func plainWWN(s string) string {
	s = strings.ToLower(s)
	for _, prefix := range []string{"naa.", "eui.", "0x"} {
		s = strings.TrimPrefix(s, prefix)
	}
	return s
}

func smallest(disks []api.Disk) []api.Disk {
	var out []api.Disk
	for _, d := range disks {
		if len(out) > 0 && d.Size < out[0].Size {
			out = out[:0]
		}
		if len(out) == 0 || d.Size == out[0].Size {
			out = append(out, d)
		}
	}
	return out
}

// Rule says a rule in words.
func Rule(r run.DiskChoice) string {
	var words []string
	for _, w := range []struct{ name, value string }{{"serial", r.Serial}, {"WWN", r.WWN}, {"by-id", r.ByID}} {
		if w.value != "" {
			words = append(words, w.name+" "+w.value)
		}
	}
	if r.Smallest {
		words = append(words, "smallest")
	}
	if r.MinSize > 0 {
		words = append(words, "at least "+size.Bound(r.MinSize))
	}
	if r.MaxSize > 0 {
		words = append(words, "at most "+size.Bound(r.MaxSize))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// List says in one line which disks there are.
func List(disks []api.Disk) string {
	if len(disks) == 0 {
		return "the machine shows no disk"
	}
	words := make([]string, len(disks))
	for i, d := range disks {
		words[i] = Describe(d)
	}
	return strings.Join(words, "; ")
}

// Describe names a disk for a person: serial, size, model, kernel name.
func Describe(d api.Disk) string {
	s := describe(d.Identity())
	if d.Removable {
		s += " (removable)"
	}
	if d.ReadOnly {
		s += " (read-only)"
	}
	return s
}

func describe(d run.Disk) string {
	id := "without serial"
	switch {
	case d.Serial != "":
		id = d.Serial
	case d.WWN != "":
		id = "WWN " + d.WWN
	}
	if d.Model != "" {
		id += ", " + d.Model
	}
	if d.Size > 0 {
		id += ", " + size.Text(d.Size)
	}
	if d.Name != "" {
		id += ", now " + d.Name
	}
	return id
}
