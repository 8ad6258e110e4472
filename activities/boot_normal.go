package activities

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

const (
	// talosBoot stands for a Talos that answers where rescue has a boot ID.
	talosBoot = "talos"
	// rebootShows is how long after a reboot a Talos from before it cannot
	// still be the one that answers.
	rebootShows = 3 * time.Minute
)

// talosAddr is where the node's Talos API is.
func talosAddr(in run.PhaseInput) string {
	return net.JoinHostPort(in.Facts.Address, strconv.Itoa(in.Node.TalosPort))
}

// up reports whether a Talos API answers, in whatever state.
func up(o talos.Observation) bool {
	return o.State == talos.Maintenance || o.State == talos.Configured
}

// darkFor is how long a Talos port must be reset or refused, with no SSH beside
// it, before a node that has its config in STATE counts as booted. A worker
// opens its API only once it has reached a control plane: that is for
// wait-ready to wait for. It is longer than a machine takes to POST, when
// nothing answers at all.
const darkFor = 2 * time.Minute

// bootNormal proves that the provider accepted the boot type normal, asked
// for once, and that Talos answers from the written disk.
func (a *Activities) bootNormal(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	asked, before, err := a.ensureNormalBoot(ctx, b, in)
	if err != nil {
		return run.PhaseOutput{}, err
	}
	return a.waitTalos(ctx, b, in, asked, before == talosBoot)
}

// ensureNormalBoot asks for the boot unless it has been asked for. It gives
// the time of the request and what answered before it.
func (a *Activities) ensureNormalBoot(ctx context.Context, b *beat, in run.PhaseInput) (asked time.Time, before string, err error) {
	b.step("looking at the server")
	for {
		server, err := a.provider.Describe(ctx, in.Node.Zone, in.Node.ServerID)
		if err != nil {
			return asked, "", err
		}
		if err := unusable(in, server); err != nil {
			return asked, "", err
		}
		seen := rebootSeen{want: provider.BootNormal, server: server, intent: b.intent()}
		if now, err := talos.Probe(ctx, talosAddr(in)); err != nil {
			return asked, "", err
		} else if up(now) {
			seen.boot = talosBoot
		}
		if in.Boots > 0 && seen.intent == nil && seen.boot == talosBoot && server.BootType == provider.BootNormal {
			return time.Now().UTC(), "", nil // it came late
		}
		it, done, err := a.moveOn(ctx, b, in, seen)
		if err != nil || done {
			return it.At, it.Boot, err
		}
		if time.Now().After(bound(ctx)) {
			return asked, "", fault.Operator("look at the server in the provider's console, then retry",
				"server %s stayed %q at the provider for too long", in.Node.ServerName, server.Status)
		}
		if err := pause.For(ctx, providerPoll); err != nil {
			return asked, "", err
		}
	}
}

// waitTalos waits for the Talos API of the boot that was asked for. A Talos
// that answered before the request must have been seen away, or so much time
// has passed that it cannot be the same boot.
func (a *Activities) waitTalos(ctx context.Context, b *beat, in run.PhaseInput, asked time.Time, wasUp bool) (run.PhaseOutput, error) {
	b.step("waiting for the Talos API")
	var dark time.Time
	for deadline := bound(ctx); ; {
		seen, err := talos.Probe(ctx, talosAddr(in))
		if err != nil {
			return run.PhaseOutput{}, err
		}
		wasUp = wasUp && up(seen) && time.Since(asked) < rebootShows
		if up(seen) && !wasUp {
			facts := in.Facts
			facts.Booted = &run.Booted{AskedAt: asked, Version: seen.Version, State: string(seen.State), At: time.Now().UTC()}
			return run.PhaseOutput{Facts: facts, Summary: fmt.Sprintf("Talos %s answers: %s", seen.Version, seen.State)}, nil
		}
		if dark = a.darkSince(ctx, in, seen, dark); !dark.IsZero() && time.Since(dark) > darkFor {
			facts := in.Facts
			facts.Booted = &run.Booted{AskedAt: asked, State: string(seen.State), At: time.Now().UTC()}
			return run.PhaseOutput{Facts: facts, Summary: fmt.Sprintf("a system without SSH is up, its Talos API is %s: a worker opens it when it reaches a control plane", seen.State)}, nil
		}
		if time.Now().After(deadline) {
			return run.PhaseOutput{}, fault.New(fault.RescueLost,
				"look at the server's console; `starter retry LOT NODE` boots it again, `starter retry LOT NODE --from reboot-rescue` installs it again",
				"no Talos API answered at %s within %s of the boot from the disk (last seen: %s)",
				talosAddr(in), in.Node.Timeouts.NormalBootOr(), seen.State)
		}
		b.step("waiting for the Talos API: " + string(seen.State))
		if err := pause.For(ctx, a.pace.knock()); err != nil {
			return run.PhaseOutput{}, err
		}
	}
}

// darkSince tells since when a node that has its config in STATE is up without
// an open Talos API, zero if it is not: its address answers, with a refusal or
// a reset, and neither rescue nor a delivered system takes SSH there.
func (a *Activities) darkSince(ctx context.Context, in run.PhaseInput, seen talos.Observation, since time.Time) time.Time {
	up := seen.State == talos.Closed || seen.State == talos.Resetting
	if in.Node.Delivery != run.ByState || !up || answers(ctx, in.Facts.Address, in.Node.Rescue.Port) {
		return time.Time{}
	}
	if since.IsZero() {
		return time.Now()
	}
	return since
}
