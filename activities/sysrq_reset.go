package activities

import (
	"context"
	"errors"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	// resetWithin is how long a boot may still answer after SysRq.
	resetWithin = 30 * time.Second
	// silentFor is how long a machine must not answer before its boot counts
	// as gone after a reset that it has confirmed; without the confirmation
	// it may only be out of reach, so that takes longer.
	silentFor            = 2 * time.Second
	silentForUnconfirmed = time.Minute
	// maxResets bounds how often an attempt resets a boot that lives on.
	maxResets = 3
)

// sysrqReset proves that the rescue boot is gone: synced, remounted
// read-only and reset. The boot normal that follows starts from there.
func (a *Activities) sysrqReset(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	boot := in.Facts.Rescue
	if boot == nil || boot.HostKey == "" {
		return run.PhaseOutput{}, fault.Lost("the run knows of no rescue boot of server %s", in.Node.ServerName)
	}
	b.step("syncing and resetting")
	for range maxResets {
		confirmed, err := a.reset(ctx, in)
		if err != nil {
			return run.PhaseOutput{}, err
		}
		b.step("watching the boot go")
		proof, err := a.watchBootGo(ctx, in, confirmed)
		if err != nil {
			return run.PhaseOutput{}, err
		}
		if proof != "" {
			facts := in.Facts
			facts.Reset = &run.Reset{BootID: boot.BootID, Proof: proof, At: time.Now().UTC()}
			return run.PhaseOutput{Facts: facts, Summary: "boot " + short(boot.BootID) + " is gone: " + proof}, nil
		}
	}
	return run.PhaseOutput{}, fault.Operator("`starter retry LOT NODE --from boot-normal` reboots through the provider: the disk is written and synced",
		"boot %s of server %s still answers after %d resets through SysRq", short(boot.BootID), in.Node.ServerName, maxResets)
}

// reset tells the agent to reset the machine, if the boot still answers. It
// reports whether the agent confirmed it.
func (a *Activities) reset(ctx context.Context, in run.PhaseInput) (confirmed bool, err error) {
	s, err := a.dialer.Resume(ctx, a.target(in, in.Facts.Address, in.Facts.Rescue.User, in.Facts.Rescue.HostKey))
	if err == nil {
		defer s.Close()
		if err = s.EnsureAgent(ctx); err == nil {
			err = s.Reset(ctx, in.Facts.Rescue.BootID)
		}
	}
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, rescue.ErrTransport), errors.Is(err, rescue.ErrNotAnswering), fault.ClassOf(err) == fault.RescueLost:
		return false, nil // on its way, gone, or out of reach: the watch tells
	default:
		return false, err
	}
}

// watchBootGo waits until the boot has stopped answering and says how that
// was seen; empty when it lives on.
func (a *Activities) watchBootGo(ctx context.Context, in run.PhaseInput, confirmed bool) (proof string, err error) {
	silence := silentForUnconfirmed
	if confirmed {
		silence = silentFor
	}
	began, lastSeen := time.Now(), time.Now()
	for {
		switch alive, other := a.bootAnswers(ctx, in); {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case other:
			return "another boot answers", nil
		case alive:
			lastSeen = time.Now()
			if time.Since(began) > a.mayAnswer {
				return "", nil
			}
		case time.Since(lastSeen) >= silence && confirmed:
			return "it confirmed the reset and answers no more", nil
		case time.Since(lastSeen) >= silence:
			return "it answers no more", nil
		}
		if err := pause.For(ctx, machinePoll); err != nil {
			return "", err
		}
	}
}

// bootAnswers reports whether the run's rescue boot answers, or another one.
func (a *Activities) bootAnswers(ctx context.Context, in run.PhaseInput) (alive, other bool) {
	if !answers(ctx, in.Facts.Address, in.Node.Rescue.Port) {
		return false, false
	}
	s, err := a.dialer.Connect(ctx, a.target(in, in.Facts.Address, in.Facts.Rescue.User, in.Facts.Rescue.HostKey))
	switch {
	case err == nil:
		s.Close()
		return true, false
	case errors.Is(err, rescue.ErrHostKey), errors.Is(err, rescue.ErrAuth):
		return false, true
	default:
		return false, false
	}
}
