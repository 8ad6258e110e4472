package activities

import (
	"context"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// Looks at the Talos port before a server counts as no live node: a single
// answer may be lost, and a live node that is taken for a dead one is erased.
const (
	liveLooks = 3
	liveEvery = 2 * time.Second
)

// checkNotLive refuses a server that is a configured Talos node, or may be
// one, unless the lot says that it is provisioned again. The node that this
// run itself has booted is none: what is left to do does not erase it. It tells
// what it saw, empty when it did not look.
func checkNotLive(ctx context.Context, in run.PhaseInput, s *secrets) (talos.APIState, error) {
	if in.Node.Reprovision || in.Facts.Booted != nil {
		return "", nil
	}
	seen, err := lookLive(ctx, talosAddr(in))
	if err != nil {
		return "", err
	}
	const remedy = "take it out of the cluster first, or say `reprovision: true` for it in the lot file if it may be erased"
	switch seen {
	case talos.Configured:
		whose := "some Talos cluster"
		if c, err := talos.Dial(ctx, talosAddr(in), s.client); err == nil {
			whose = "this lot's cluster"
			_ = c.Close()
		}
		return seen, fault.Operator(remedy, "server %s is a live, configured member of %s", in.Node.ServerName, whose)
	case talos.Resetting:
		return seen, fault.Operator(remedy, "server %s resets every connection to its Talos API, as a configured node does that cannot reach its control plane", in.Node.ServerName)
	default:
		return seen, nil
	}
}

// lookLive looks until the answer is sure, and gives the last one otherwise.
func lookLive(ctx context.Context, addr string) (talos.APIState, error) {
	for look := 1; ; look++ {
		seen, err := talos.Probe(ctx, addr)
		if err != nil {
			return "", err
		}
		doubtful := seen.State == talos.Resetting || seen.State == talos.Silent
		if !doubtful || look == liveLooks {
			return seen.State, nil
		}
		if err := pause.For(ctx, liveEvery); err != nil {
			return "", err
		}
	}
}
