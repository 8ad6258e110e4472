// Package prep takes the handed-over disks of a machine to blank ones: it
// carries out what package plan decides, and proves the outcome.
package prep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/inventory"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	// rounds is how often is begun again when a disk is still or again in
	// use: udev may assemble an array anew while its members are released.
	rounds = 4
	// settle is how long udev gets between two rounds.
	settle = 300 * time.Millisecond
)

// Run prepares the disks that the spec names and no other. It is done when an
// inventory shows them unused, without signatures and with a blank GPT; run
// again on such disks it writes nothing. Refusals come before anything is
// written.
func Run(ctx context.Context, h host.Host, spec api.DiskPrepSpec, rep report.Reporter) (run.Prepared, error) {
	e := &executor{host: h, spec: spec, rep: rep}
	for round := 1; ; round++ {
		p, err := e.plan(ctx)
		if err != nil {
			return run.Prepared{}, err
		}
		if p.Clean() {
			return e.proved(p), nil
		}
		if round > rounds {
			return run.Prepared{}, e.unproved(p)
		}
		if err := e.execute(ctx, p); err != nil {
			if !errors.Is(err, syscall.EBUSY) || ctx.Err() != nil {
				return run.Prepared{}, err
			}
			e.busy = err
			report.Log(rep, "saw", err.Error()+"; looking again")
			if err := pause(ctx); err != nil {
				return run.Prepared{}, err
			}
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settle):
		return nil
	}
}

// executor carries plans out.
type executor struct {
	host host.Host
	spec api.DiskPrepSpec
	rep  report.Reporter
	done run.Prepared
	busy error // the last reason why a round was cut short
}

// plan takes an inventory and decides, and tells both.
func (e *executor) plan(ctx context.Context) (plan.Plan, error) {
	e.rep.Progress(api.Progress{Step: "looking at the disks"})
	inv, err := inventory.Take(ctx, e.host)
	if err != nil {
		return plan.Plan{}, err
	}
	if err := e.lookBehind(ctx, inv.Disks); err != nil {
		return plan.Plan{}, err
	}
	for _, d := range inv.Disks {
		report.Log(e.rep, "saw", saw(d))
	}
	p, err := plan.DiskPrep(inv, e.spec)
	if err != nil {
		return plan.Plan{}, err
	}
	if p.Clean() {
		report.Log(e.rep, "plan", "nothing to do: the disks are blank")
	}
	for _, s := range p.Steps {
		report.Log(e.rep, "plan", s.String())
	}
	return p, nil
}

// saw says what a disk holds.
func saw(d api.Disk) string {
	var b strings.Builder
	b.WriteString("disk " + plan.Describe(d))
	if d.Table != "" {
		b.WriteString(", table " + d.Table)
	}
	for _, s := range d.Signatures {
		fmt.Fprintf(&b, ", %s at %d", s.Type, s.Offset)
	}
	if d.Residue {
		b.WriteString(", old data that no table shows")
	}
	for _, p := range d.Parts {
		fmt.Fprintf(&b, ", partition %d %s", p.Number, p.Label)
		for _, s := range p.Signatures {
			b.WriteString(" " + s.Type)
		}
	}
	for _, h := range d.Holders {
		fmt.Fprintf(&b, ", used by %s %s on %s", h.Kind, h.Name, h.Device)
	}
	return b.String()
}

// proved is the outcome: the inventory behind the plan found nothing to do.
func (e *executor) proved(p plan.Plan) run.Prepared {
	for _, d := range p.Disks {
		e.done.Blanked = append(e.done.Blanked, d.Identity().Label())
	}
	report.Log(e.rep, "did", "verified: no holder, no signature, a blank GPT on "+strings.Join(e.done.Blanked, ", "))
	return e.done
}

// unproved is the failure to get there.
func (e *executor) unproved(p plan.Plan) error {
	left := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		left[i] = s.String()
	}
	if e.busy != nil {
		why := e.busy.Error()
		if f, ok := fault.As(e.busy); ok {
			why = f.Message // without its remedy, which is the one below
		}
		return &fault.Error{Class: fault.NeedsOperator, Cause: e.busy, Remedy: "look on the machine at what keeps it busy",
			Message: fmt.Sprintf("the disks are still in use after %d rounds (%s): %s", rounds, strings.Join(left, "; "), why)}
	}
	return fault.Operator("look on the machine at what brings it back, or "+plan.Replace,
		"the disks are not blank after %d rounds, still to do: %s", rounds, strings.Join(left, "; "))
}
