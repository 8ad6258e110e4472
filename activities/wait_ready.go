package activities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// readyHold is how long a node must stay Ready.
const readyHold = 3 * time.Second

// waitReady proves over mTLS that the machine is running and ready, that the
// node is Ready in its cluster, and that it runs the lot's config.
func (a *Activities) waitReady(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	s, err := a.open(in)
	if err != nil {
		return run.PhaseOutput{}, err
	}
	b.step("waiting for Ready")
	unmet := []string{"the Talos API has not answered over mTLS yet"}
	limited, cancel := context.WithDeadline(ctx, bound(ctx))
	defer cancel()
	ready, err := talos.WaitReady(limited, talosAddr(in), s.client, talos.ReadyOptions{
		Hold: readyHold, Worker: s.config.MachineType == "worker",
		Report: func(conditions []string) {
			unmet = conditions
			step := "Ready, watching that it stays so"
			if len(conditions) > 0 {
				step = "waiting for Ready: " + clipEnd(strings.Join(conditions, "; "), 300)
			}
			b.set(run.Progress{Step: step, Unmet: conditions})
		},
	})
	switch {
	case ctx.Err() != nil:
		return run.PhaseOutput{}, ctx.Err()
	case limited.Err() != nil:
		return run.PhaseOutput{}, fault.Operator("mend what is missing, then retry, which goes on waiting; a worker that never answers may not reach a control plane on port 50001",
			"node %s was not Ready within %s: %s", in.Node.Name, in.Node.Timeouts.ReadyOr(), strings.Join(unmet, "; "))
	case err != nil:
		return run.PhaseOutput{}, err
	}
	if err := a.proveConfig(ctx, in, s); err != nil {
		return run.PhaseOutput{}, err
	}
	facts := in.Facts
	facts.Ready = &ready
	return run.PhaseOutput{Facts: facts, Summary: fmt.Sprintf("node %s is Ready, Talos %s", ready.NodeName, ready.TalosVersion)}, nil
}

func (a *Activities) proveConfig(ctx context.Context, in run.PhaseInput, s *secrets) error {
	c, err := talos.Dial(ctx, talosAddr(in), s.client)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return sameConfig(ctx, c, in, s)
}
