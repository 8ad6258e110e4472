package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// keptWithin is how long a live node has to show that it is Ready.
const keptWithin = 20 * time.Second

// preflightOrKept is preflight in a lot that may have been run before: a node
// that is Ready with exactly the lot's config is left alone, and its run is
// done. What else preflight found matters to nobody then.
func (a *Activities) preflightOrKept(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	out, err := a.preflight(ctx, b, in)
	if err == nil || !mayBeKept(in) || fault.ClassOf(err) != fault.NeedsOperator {
		return out, err
	}
	b.step("looking whether the node is Ready already")
	if kept, ok := a.kept(ctx, in); ok {
		return kept, nil
	}
	return out, err
}

// mayBeKept reports whether a node that is Ready would be left alone: not one
// that is to be installed again, nor one on which the run has begun.
func mayBeKept(in run.PhaseInput) bool {
	return in.Keep && !in.Node.Reprovision && !in.Facts.Touched && in.Facts.Rescue == nil && in.Facts.Booted == nil
}

// kept proves that the server is the lot's node already, over mTLS. It
// reports false for everything that is not proved.
func (a *Activities) kept(ctx context.Context, in run.PhaseInput) (run.PhaseOutput, bool) {
	var none run.PhaseOutput
	ctx, cancel := context.WithTimeout(ctx, keptWithin)
	defer cancel()
	networks, err := a.provider.Networks(ctx, in.Node.Zone, in.Node.ServerID)
	if err != nil {
		return none, false
	}
	vlan, err := autoVLAN(in.Node, networks)
	if err != nil {
		return none, false
	}
	server, err := a.provider.Describe(ctx, in.Node.Zone, in.Node.ServerID)
	if err != nil || server.Name != in.Node.ServerName || len(server.Addresses) == 0 {
		return none, false
	}
	in.Facts.Address, in.Facts.Preflight = server.Addresses[0], &run.Checked{
		ServerName: server.Name, Status: server.Status, BootType: string(server.BootType), VLAN: vlan,
	}
	s, err := a.open(in)
	if err != nil || !s.client.Admin() { // only an admin can read the config
		return none, false
	}
	if seen, err := talos.Probe(ctx, talosAddr(in)); err != nil || seen.State != talos.Configured {
		return none, false
	}
	if err := a.proveConfig(ctx, in, s); err != nil {
		return none, false
	}
	ready, err := talos.WaitReady(ctx, talosAddr(in), s.client, readyOptions(in, s, nil))
	if err != nil {
		return none, false
	}
	in.Facts.Applied = &run.Applied{ConfigSHA256: s.config.SHA256, Already: true}
	in.Facts.Ready = &ready
	return run.PhaseOutput{Facts: in.Facts, Summary: fmt.Sprintf("node %s is Ready with the lot's config, Talos %s, and is left alone",
		ready.NodeName, ready.TalosVersion)}, true
}
