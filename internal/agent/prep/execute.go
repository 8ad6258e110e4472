package prep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
)

// execute does the steps: first all releases, then, with every disk held
// exclusively so that nothing can take one again, all erasing.
func (e *executor) execute(ctx context.Context, p plan.Plan) error {
	first := slices.IndexFunc(p.Steps, plan.Step.Destroys)
	if first < 0 {
		first = len(p.Steps)
	}
	for _, s := range p.Steps[:first] {
		if err := e.release(ctx, p, s); err != nil {
			return err
		}
	}
	return e.erase(ctx, p.Disks[0], p.Steps[first:])
}

// release takes one holder down, unless it went with another.
func (e *executor) release(ctx context.Context, p plan.Plan, s plan.Step) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	disks, err := e.host.Topology(ctx)
	if err != nil {
		return fault.Retry("the list of disks cannot be read: %w", err)
	}
	if !held(disks, p, s) {
		report.Log(e.rep, "saw", s.Target+" is released already")
		return nil
	}
	e.rep.Progress(api.Progress{Step: s.String()})
	switch s.Action {
	case plan.Unmount:
		err = e.host.Unmount(ctx, s.Target)
	case plan.SwapOff:
		err = e.host.SwapOff(ctx, s.Target)
	default:
		err = e.tool(ctx, s)
	}
	if err != nil {
		return fault.Operator("look on the machine at what keeps it busy", "%s failed: %w", s, err)
	}
	if s.Tool() == nil {
		report.Log(e.rep, "did", s.String())
	}
	e.done.Released = append(e.done.Released, string(s.Action)+" "+s.Target)
	return nil
}

// held reports whether what a step releases is still there on a handed-over
// disk, each found again by identity.
func held(disks []api.Disk, p plan.Plan, s plan.Step) bool {
	for _, d := range p.Disks {
		now, err := plan.Resolve(disks, d.Identity())
		if err == nil && slices.ContainsFunc(now.Holders, func(h api.Holder) bool { return h.Name == s.Target }) {
			return true
		}
	}
	return false
}

// tool runs a helper and records it. A helper that fails found the device
// busy, as far as one can know without reading its words: EBUSY.
func (e *executor) tool(ctx context.Context, s plan.Step) error {
	out, err := e.host.Run(ctx, s.Tool()...)
	if err != nil {
		return err
	}
	entry := logEntry("ran", strings.Join(s.Tool(), " "))
	entry.Args, entry.Exit, entry.Output = s.Tool(), &out.Exit, out.Tail
	e.rep.Log(entry)
	if out.Exit != 0 {
		return fmt.Errorf("exit status %d: %w", out.Exit, syscall.EBUSY)
	}
	return nil
}

// erase does the destroying steps; system is the system disk as the plan saw
// it.
func (e *executor) erase(ctx context.Context, system api.Disk, steps []plan.Step) (err error) {
	held := &heldDisks{host: e.host}
	defer func() { err = errors.Join(err, held.close()) }()
	for _, s := range steps {
		if err := held.open(ctx, s.Disk.Identity()); err != nil {
			return err
		}
	}
	for _, s := range steps {
		disk, err := held.again(ctx, s.Disk.Identity())
		if err != nil {
			return err
		}
		e.rep.Progress(api.Progress{Step: s.String()})
		isSystem := s.Disk.Name == system.Name
		if err := e.eraseOne(ctx, disk, s, isSystem); err != nil {
			return failed(ctx, s, isSystem, err)
		}
		report.Log(e.rep, "did", s.String())
		e.record(s)
	}
	return held.reread()
}

// eraseOne does one destroying step. The inside of the system disk is left to
// the write phase, which zeroes it with the image.
func (e *executor) eraseOne(ctx context.Context, disk host.Disk, s plan.Step, system bool) error {
	if s.Action == plan.Wipe {
		return wipe(ctx, disk, s.Ranges)
	}
	if !system {
		if err := e.clear(ctx, disk, *s.Disk); err != nil {
			return err
		}
	}
	return blank(ctx, disk, s.Ranges)
}

func (e *executor) record(s plan.Step) {
	for _, what := range s.Clears {
		e.done.Cleared = append(e.done.Cleared, s.Disk.Identity().Label()+": "+what)
	}
}

// failed explains an error of a write: the disk's, or a cancellation.
func failed(ctx context.Context, s plan.Step, system bool, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if system {
		return fault.Operator("the disk is failing: "+plan.FailingSystem, "%s failed: %w", s, err)
	}
	return fault.Operator("the disk is failing: "+plan.FailingSecondary, "%s failed: %w", s, err)
}
