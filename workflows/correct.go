package workflows

import (
	"cmp"

	"github.com/ironlot/ironlot/internal/run"
)

// resume takes up a person's retry of a run that is stuck in a phase, and
// gives the phase to go on with.
func (n *node) resume(stuck run.Phase, r run.RetryRequest) run.Phase {
	if r.Input != nil {
		return n.correct(stuck, r)
	}
	from := cmp.Or(r.From, stuck)
	switch from {
	case stuck:
	case run.RebootRescue:
		n.status.Facts = n.status.Facts.Forget(from) // a new boot is what is asked for
	default:
		n.status.Facts = n.status.Facts.Drop(from)
	}
	return from
}

// correct takes the corrected input. Preflight checks it, then the run goes
// on where it is stuck, or earlier where the change begins to matter.
func (n *node) correct(stuck run.Phase, r run.RetryRequest) run.Phase {
	in := *r.Input
	if in.Sealed == (run.Sealed{}) {
		in.Sealed = n.in.Sealed
	}
	if stuck == run.Preflight && n.skipTo != "" {
		stuck = n.skipTo // of the correction that preflight has refused
	}
	next := earlier(stuck, concerns(n.in, in))
	inRescue := !next.Before(run.WaitSSH) && next.Before(run.BootNormal)
	if inRescue && n.status.Facts.Reset != nil {
		next = run.RebootRescue // the rescue boot is gone
	}
	if in.Node.Disks != n.in.Node.Disks {
		in.Node.Disks.System = n.sameDisk(in.Node.Disks.System, r.AnotherDisk)
		n.status.Facts.System, n.status.Facts.Secondary = nil, nil
	}
	n.in, n.status.Node = in, in.Node
	n.status.Facts = n.status.Facts.Drop(next)
	if next != run.Preflight {
		n.skipTo = next
	}
	return run.Preflight
}

// concerns is the first phase whose outcome depends on what has changed. Other
// credentials for the cluster alone matter to the phase that uses them next.
func concerns(old, corrected run.NodeInput) run.Phase {
	config := !old.Sealed.SameConfig(corrected.Sealed) || old.Node.VLAN != corrected.Node.VLAN
	switch {
	case old.Node.Disks != corrected.Node.Disks:
		return run.RebootRescue // disks are chosen behind it; a good boot is taken again
	case old.Node.Image != corrected.Node.Image:
		return run.Stage
	case old.Node.Delivery != corrected.Node.Delivery, config && corrected.Node.Delivery == run.ByState:
		return run.Stage // the config is written with the image
	case config:
		return run.ApplyConfig
	default:
		return run.WaitReady
	}
}

// sameDisk narrows a rule to the disk that the run has begun to erase.
func (n *node) sameDisk(rule run.DiskChoice, another bool) run.DiskChoice {
	chosen := n.status.Facts.System
	switch {
	case !n.status.Facts.Touched || chosen == nil || another:
		return rule
	case chosen.Serial != "":
		return run.DiskChoice{Serial: chosen.Serial}
	default:
		return run.DiskChoice{WWN: chosen.WWN}
	}
}

// checkInput refuses a corrected input that is for another server, or that
// would move the run to another disk than the one that it has erased.
func (n *node) checkInput(r run.RetryRequest) error {
	was, is := n.in.Node, r.Input.Node
	switch {
	case r.From != "" && r.From != run.Preflight:
		return refuse("a retry with corrected input goes back to %s, which checks it: leave out the phase %s", run.Preflight, r.From)
	case was.ID() != is.ID() || was.Zone != is.Zone || was.Lot != is.Lot || was.Name != is.Name || was.Lab != is.Lab:
		return refuse("the corrected input is for node %s of lot %s on server %s, and this run is for node %s of lot %s on server %s: abort it and start another",
			is.Name, is.Lot, is.ServerID, was.Name, was.Lot, was.ServerID)
	case is.Image.URL == "":
		return refuse("the corrected input of node %s names no image", was.Name)
	case (r.Input.Sealed.Config == "") != (r.Input.Sealed.Talosconfig == ""):
		return refuse("the corrected input of node %s holds a machine config or a talosconfig alone: give both or none", was.Name)
	}
	return n.checkDisk(r)
}

// checkDisk keeps a run on the disk that it has begun to erase.
func (n *node) checkDisk(r run.RetryRequest) error {
	rule, chosen := r.Input.Node.Disks.System, n.status.Facts.System
	if rule == (run.DiskChoice{}) {
		return refuse("the corrected input of node %s has no rule for the system disk", n.in.Node.Name)
	}
	if !n.status.Facts.Touched || chosen == nil || r.AnotherDisk {
		return nil
	}
	names := rule.Serial != "" && rule.Serial == chosen.Serial || rule.WWN != "" && rule.WWN == chosen.WWN
	if rule != n.in.Node.Disks.System && !names {
		return refuse("node %s has chosen the disk %s and may have erased it already: leave its rule as it is, name that disk, or allow another one with --another-disk",
			n.in.Node.Name, chosen.Label())
	}
	if chosen.Serial == "" && chosen.WWN == "" && r.Input.Node.Disks != n.in.Node.Disks {
		return refuse("the disk that node %s may have erased has no serial number or WWN by which it could be found again: allow another one with --another-disk", n.in.Node.Name)
	}
	return nil
}

// earlier is the earlier one of two phases.
func earlier(a, b run.Phase) run.Phase {
	if a.Before(b) {
		return a
	}
	return b
}
