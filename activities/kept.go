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
	out, f, err := a.preflight(ctx, b, in)
	if fault.ClassOf(err) != fault.NeedsOperator {
		return out, err
	}
	if kept, ok := a.kept(ctx, b, f); ok {
		return kept, nil
	}
	return out, err
}

// mayBeKept reports whether a node that is Ready would be left alone: not one
// that is to be installed again, nor one on which the run has begun.
func mayBeKept(in run.PhaseInput) bool {
	return in.Keep && !in.Node.Reprovision && !in.Facts.Touched && in.Facts.Rescue == nil && in.Facts.Booted == nil
}

// kept proves that the server is the lot's node already, over mTLS, going on
// from what preflight has found. It reports false for everything that is not
// proved.
func (a *Activities) kept(ctx context.Context, b *beat, f *finding) (run.PhaseOutput, bool) {
	var none run.PhaseOutput
	in := f.in
	if !mayBeKept(in) || f.live != talos.Configured || f.server.Name != in.Node.ServerName || !f.secrets.client.Admin() {
		return none, false // only an admin can read the config
	}
	b.step("looking whether the node is Ready already")
	ctx, cancel := context.WithTimeout(ctx, keptWithin)
	defer cancel()
	if err := a.proveConfig(ctx, in, f.secrets); err != nil {
		return none, false
	}
	w := &readiness{in: in, secrets: f.secrets, beat: b}
	ready, err := w.agreed(ctx)
	if err != nil {
		return none, false
	}
	in.Facts.Applied = &run.Applied{ConfigSHA256: f.secrets.config.SHA256, Already: true}
	in.Facts.Ready = &ready
	return run.PhaseOutput{Facts: in.Facts, Summary: fmt.Sprintf("node %s is Ready with the lot's config, Talos %s, and is left alone",
		ready.NodeName, ready.TalosVersion)}, true
}
