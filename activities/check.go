package activities

import (
	"context"
	"slices"

	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// check is preflight for a dry run: it also finds out which disks a run would
// erase, when the server is in rescue already, which keys of the config would
// change, when it is a node that can be read, and whether it is this lot's
// Ready node, which a lot leaves alone. Nothing is changed on the server; only
// the agent is put into the rescue system's RAM to look.
func (a *Activities) check(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	in.Keep = true
	out, f, err := a.preflight(ctx, b, in)
	if fault.ClassOf(err) == fault.NeedsOperator {
		if kept, ok := a.kept(ctx, b, f); ok {
			return kept, nil
		}
	}
	if err != nil {
		return out, err
	}
	in.Facts = out.Facts
	b.step("looking what would change")
	out.Facts.Preflight.Config = a.planConfig(ctx, in, f.secrets)
	if f.server.BootType != provider.BootRescue || !answers(ctx, out.Facts.Address, in.Node.Rescue.Port) {
		return out, nil
	}
	session, inventory, err := a.inspect(ctx, in, f.server.RescueUser)
	if err != nil {
		return out, nil //nolint:nilerr // not in rescue: the disks are not known yet
	}
	defer session.Close()
	if !inventory.Root.InRAM {
		return out, nil
	}
	if out.Facts, err = chooseDisks(in, inventory); err != nil {
		return out, err
	}
	out.Facts.Rescue = &run.RescueBoot{Reused: !in.Node.Rescue.Fresh, BootID: inventory.BootID}
	_, err = plan.DiskPrep(inventory, prepSpec(out.Facts))
	return out, err
}

// planConfig compares the lot's config with the one that the server runs.
func (a *Activities) planConfig(ctx context.Context, in run.PhaseInput, s *secrets) *run.ConfigPlan {
	p := &run.ConfigPlan{SHA256: s.config.SHA256, Type: s.config.MachineType, Hostname: s.config.Hostname}
	running, changes, err := runningConfig(ctx, talosAddr(in), s)
	if err != nil {
		p.Unread = clip.End(err.Error(), 200)
		return p
	}
	p.Running, p.Changes = running, slices.Clip(changes)
	return p
}

// runningConfig reads what the node runs now; the error says why not.
func runningConfig(ctx context.Context, addr string, s *secrets) (digest string, changes []string, err error) {
	seen, err := talos.Probe(ctx, addr)
	switch {
	case err != nil:
		return "", nil, err
	case seen.State != talos.Configured:
		return "", nil, fault.Operator("", "no configured Talos node answers at %s (%s)", addr, seen.State)
	case !s.client.Admin():
		return "", nil, fault.Operator("", "the lot's talosconfig has not the role os:admin, which reading a config needs")
	}
	c, err := talos.Dial(ctx, addr, s.client)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = c.Close() }()
	return c.ConfigChanges(ctx, s.config)
}
