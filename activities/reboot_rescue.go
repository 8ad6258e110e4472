package activities

import (
	"context"
	"slices"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
)

// rebootRescue proves that the provider has accepted a reboot into rescue,
// asked for once, or that the server is in a good rescue boot already.
func (a *Activities) rebootRescue(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	b.step("looking at the server")
	for {
		server, err := a.provider.Describe(ctx, in.Node.Zone, in.Node.ServerID)
		if err != nil {
			return run.PhaseOutput{}, err
		}
		if err := unusable(in, server); err != nil {
			return run.PhaseOutput{}, err
		}
		seen := rebootSeen{want: provider.BootRescue, server: server, intent: b.intent()}
		if seen.intent != nil {
			seen.since = time.Since(seen.intent.At)
		}
		if server.BootType == provider.BootRescue && server.Usable {
			seen.boot = a.lookForRescue(ctx, b, in, server)
		}
		if mayReuse(in, seen) {
			return rescueReused(in, seen.boot), nil
		}
		it, done, err := a.moveOn(ctx, b, in, seen)
		if err != nil {
			return run.PhaseOutput{}, err
		}
		if done {
			return rescueAsked(in, it), nil
		}
		if time.Now().After(bound(ctx)) {
			return run.PhaseOutput{}, fault.Operator("look at the server in the provider's console, then retry",
				"server %s stayed %q at the provider for too long", in.Node.ServerName, server.Status)
		}
		if err := pause.For(ctx, providerPoll); err != nil {
			return run.PhaseOutput{}, err
		}
	}
}

// mayReuse decides whether the rescue boot that answers will do: a run
// against a half-done server must not pay another reboot. A boot that the
// run has left behind never will, and a lot may ask for a fresh one.
func mayReuse(in run.PhaseInput, s rebootSeen) bool {
	if s.boot == "" || s.intent != nil || slices.Contains(in.Facts.SeenBoots, s.boot) {
		return false
	}
	return !in.Node.Rescue.Fresh || len(in.Facts.SeenBoots) > 0
}

func rescueReused(in run.PhaseInput, boot string) run.PhaseOutput {
	facts := in.Facts
	facts.Rescue = &run.RescueBoot{Reused: true, BootID: boot}
	return run.PhaseOutput{Facts: facts, Summary: "already in rescue, boot " + short(boot)}
}

func rescueAsked(in run.PhaseInput, it run.Intent) run.PhaseOutput {
	facts := in.Facts
	facts.Rescue = &run.RescueBoot{AskedAt: it.At}
	if it.Boot != "" && !slices.Contains(facts.SeenBoots, it.Boot) {
		facts.SeenBoots = append(slices.Clone(facts.SeenBoots), it.Boot)
	}
	return run.PhaseOutput{Facts: facts, Summary: "provider accepted the reboot at " + it.At.Format(time.TimeOnly) + " UTC"}
}

// short is the start of a boot ID, enough to tell boots apart.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}
