package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
	"github.com/ironlot/ironlot/internal/talos"
)

// settleFor is how long a rescue system that answers may still refuse what
// it will allow once it is up (sudo, SFTP).
const settleFor = 90 * time.Second

// loginPoll is how often a system is tried that refuses, or a provider that
// fails.
const loginPoll = 2 * time.Second

// waitSSH proves that SSH answers, from a boot that the run has not seen
// before, and that it is the rescue system. It pins the boot's host key,
// takes the inventory and chooses the disks.
func (a *Activities) waitSSH(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	b.step("waiting for SSH")
	look := sshLook{a: a, in: in}
	var refusedSince time.Time
	var last string
	for deadline := bound(ctx); ; {
		facts, waiting, err := look.once(ctx, b)
		switch {
		case err == nil && waiting == "":
			return run.PhaseOutput{Facts: facts, Summary: summaryOf(facts)}, nil
		case err == nil:
			last, refusedSince = waiting, time.Time{}
		case ctx.Err() != nil:
			return run.PhaseOutput{}, ctx.Err()
		case final(err, &refusedSince):
			return run.PhaseOutput{}, err
		default:
			last = err.Error()
		}
		if time.Now().After(deadline) {
			return run.PhaseOutput{}, fault.New(fault.RescueLost, "look at the server's console, then retry, which asks for the boot again",
				"no new rescue boot of server %s answered SSH at %s within %s: %s",
				in.Node.ServerName, in.Facts.Address, in.Node.Timeouts.RescueBootOr(), last)
		}
		b.step("waiting for SSH: " + clip.End(last, 200))
		next := machinePoll
		switch {
		case err != nil:
			next = loginPoll
		case waiting == nothingListens:
			next = a.pace.knock()
		}
		if err := pause.For(ctx, next); err != nil {
			return run.PhaseOutput{}, err
		}
	}
}

// final reports whether an error ends the waiting. What an operator must
// mend ends it at once when it is about disks, and after a while when the
// rescue system itself refuses, which it may do while it comes up.
func final(err error, since *time.Time) bool {
	if errors.Is(err, errChoice) || errors.Is(err, errTaken) {
		return true
	}
	if fault.ClassOf(err) != fault.NeedsOperator || errors.Is(err, rescue.ErrAuth) {
		*since = time.Time{}
		return false // another system answers, or none
	}
	if since.IsZero() {
		*since = time.Now()
	}
	return time.Since(*since) > settleFor
}

// sshLook looks again and again, and asks the provider only now and then.
type sshLook struct {
	a     *Activities
	in    run.PhaseInput
	user  string    // of the rescue system, as the provider told it last
	asked time.Time // when it did
}

// askUserEvery is how often the provider is asked for the rescue user, which
// it may know only after the reboot.
const askUserEvery = 20 * time.Second

// nothingListens is what is waited for until the machine has booted.
const nothingListens = "nothing listens on the SSH port"

// once looks once. It returns the facts of a good boot, or what is still
// waited for.
func (l *sshLook) once(ctx context.Context, b *beat) (facts run.Facts, waiting string, err error) {
	in := l.in
	if !answers(ctx, in.Facts.Address, in.Node.Rescue.Port) {
		return facts, nothingListens, nil
	}
	if time.Since(l.asked) > askUserEvery {
		server, err := l.a.provider.Describe(ctx, in.Node.Zone, in.Node.ServerID)
		if err != nil {
			return facts, "", err
		}
		l.user, l.asked = server.RescueUser, time.Now()
	}
	b.step("SSH port answers, logging in")
	s, inventory, err := l.a.inspect(ctx, in, l.user)
	if err != nil {
		return facts, "", err
	}
	defer func() {
		if err == nil && waiting == "" {
			l.a.dialer.Keep(s) // for disk-prep
		} else {
			s.Close()
		}
	}()
	switch {
	case slices.Contains(in.Facts.SeenBoots, inventory.BootID):
		return facts, "the boot from before the reboot still answers", nil
	case !inventory.Root.InRAM:
		return facts, fmt.Sprintf("the system on the disk answers (root is %s), not rescue", inventory.Root.Source), nil
	}
	facts, err = chooseDisks(in, inventory)
	if err != nil {
		return facts, "", err
	}
	known := run.RescueBoot{}
	if in.Facts.Rescue != nil {
		known = *in.Facts.Rescue
	}
	if err := l.a.claim(ctx, s, in, inventory.BootID); err != nil {
		return facts, "", err
	}
	facts.Rescue = &run.RescueBoot{
		AskedAt: known.AskedAt, Reused: known.Reused && known.BootID == inventory.BootID,
		BootID: inventory.BootID, HostKey: s.HostKey(), User: s.User(),
		Kernel: inventory.Kernel, Arch: inventory.Arch, RootFS: inventory.Root.FSType, RAM: inventory.RAM,
	}
	return facts, "", nil
}

// errChoice marks that the lot's disks are not on the machine as it is.
var errChoice = errors.New("disk choice")

// chooseDisks applies the lot's rule, once in the life of a run: when the
// run has chosen before, the same disks must be there.
func chooseDisks(in run.PhaseInput, inventory api.Inventory) (run.Facts, error) {
	facts := in.Facts
	if facts.System != nil {
		return facts, allThere(inventory.Disks, facts)
	}
	system, err := plan.Choose(inventory.Disks, in.Node.Disks.System)
	if err != nil {
		return facts, fmt.Errorf("%w: %w", errChoice, err)
	}
	identity := system.Identity()
	facts.System = &identity
	if in.Node.Disks.Secondary != run.Keep {
		for _, d := range inventory.Disks {
			if d.Name != system.Name && !d.Removable && !d.ReadOnly {
				facts.Secondary = append(facts.Secondary, d.Identity())
			}
		}
	}
	if err := volumesFit(in, inventory.Disks, identity); err != nil {
		return facts, err
	}
	return facts, allThere(inventory.Disks, facts)
}

// volumesFit refuses a machine without a disk for a user volume of its config
// while nothing is erased: Talos would come up, and wait for the disk for ever.
func volumesFit(in run.PhaseInput, disks []api.Disk, system run.Disk) error {
	if in.Facts.Preflight == nil {
		return nil
	}
	var all []run.Disk
	for _, d := range disks {
		all = append(all, d.Identity())
	}
	for _, v := range in.Facts.Preflight.Volumes {
		if fits, known := talos.VolumeFits(v, all, system); known && !fits {
			return fmt.Errorf("%w: %w", errChoice, fault.Operator("correct the volume's diskSelector or minSize, or rent a server with such a disk",
				"no disk of server %s fits the user volume %s (%s, at least %s): %s", in.Node.ServerName, v.Name, v.Match, size.Bound(v.MinSize), plan.List(disks)))
		}
	}
	return nil
}

// allThere makes sure that each chosen disk can be found by its identity,
// and only it: what is erased later is found that way.
func allThere(disks []api.Disk, f run.Facts) error {
	for _, want := range append([]run.Disk{*f.System}, f.Secondary...) {
		if _, err := plan.Resolve(disks, want); err != nil {
			return fmt.Errorf("%w: %w", errChoice, err)
		}
	}
	return nil
}

func summaryOf(f run.Facts) string {
	return fmt.Sprintf("rescue boot %s, host key pinned, system disk %s and %d secondary", short(f.Rescue.BootID), f.System.Label(), len(f.Secondary))
}
