package run

import "slices"

// Before reports whether p comes before q.
func (p Phase) Before(q Phase) bool {
	order := Phases()
	return slices.Index(order, p) < slices.Index(order, q)
}

// Phases lists all phases in order.
func Phases() []Phase {
	return []Phase{Preflight, RebootRescue, WaitSSH, DiskPrep, Stage, Write, SysrqReset, BootNormal, ApplyConfig, WaitReady}
}

// Forget drops what was proved by a phase and all later ones, because the
// run goes back to it. The boot that is left behind is remembered, so that it
// is never taken for a new one.
func (f Facts) Forget(from Phase) Facts {
	if !WaitSSH.Before(from) && f.Rescue != nil {
		if id := f.Rescue.BootID; id != "" && !slices.Contains(f.SeenBoots, id) {
			f.SeenBoots = append(slices.Clone(f.SeenBoots), id)
		}
	}
	return f.Drop(from)
}

// Drop is Forget for a boot that may still be good: a person's retry takes it
// again when it answers. The chosen disks stay: a run never changes its mind
// about which disks it erases.
func (f Facts) Drop(from Phase) Facts {
	drop := func(p Phase) bool { return !p.Before(from) }
	if drop(WaitSSH) {
		f.Rescue = nil
	}
	if drop(DiskPrep) {
		f.Prepared = nil
	}
	if drop(Stage) {
		f.Staged = nil
	}
	if drop(Write) {
		f.Written = nil
	}
	if drop(SysrqReset) {
		f.Reset = nil
	}
	if drop(BootNormal) {
		f.Booted = nil
	}
	if drop(ApplyConfig) {
		f.Applied = nil
	}
	if drop(WaitReady) {
		f.Ready = nil
	}
	return f
}

// Erased says in one sentence what of the server's disks is erased by now.
func (f Facts) Erased(at Phase) string {
	system := "the system disk"
	if f.System != nil {
		system = "the system disk " + f.System.Label()
	}
	switch {
	case f.Written != nil:
		return system + " holds the Talos image; its former content is gone."
	case f.Prepared != nil || at == Write || at == Stage:
		return system + " and the handed-over secondary disks are erased; no Talos image is on them."
	case at == DiskPrep || f.Touched:
		return system + " and the handed-over secondary disks may be partly erased."
	default:
		return "nothing: no disk has been touched by this run."
	}
}

// Label names a disk for people: its serial, or what else is known of it.
func (d Disk) Label() string {
	switch {
	case d.Serial != "":
		return d.Serial
	case d.WWN != "":
		return d.WWN
	default:
		return d.Name
	}
}
