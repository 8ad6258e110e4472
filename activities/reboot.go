package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	// providerPoll is how often the provider is asked about a server that is
	// on its way. The recordings show the state changing every 15 s or so.
	providerPoll = 3 * time.Second
	// doubtFor is how long an old boot may go on answering after a reboot
	// that may or may not have been asked for. Reboots are abrupt: a boot
	// that answers longer was not rebooted.
	doubtFor = 60 * time.Second
)

// rebootSeen is all that decides about a reboot.
type rebootSeen struct {
	want   provider.BootType
	server provider.Server
	boot   string      // what answers now: a rescue boot ID, "talos", or "" for nothing
	intent *run.Intent // recorded by this or an earlier attempt of the phase
	since  time.Duration
}

// rebootStep is what is to be done about a reboot.
type rebootStep int

const (
	rebootAsk   rebootStep = iota // ask the provider now
	rebootAsked                   // it has been asked for: never again
	rebootWait                    // look again later
)

// judgeReboot decides whether the reboot has been asked for. Between the
// record of the intent and the provider's answer a worker may die at any
// point, so an unanswered intent is judged by what it would have changed.
func judgeReboot(s rebootSeen) rebootStep {
	switch {
	case s.intent == nil && s.server.Settled:
		return rebootAsk
	case s.intent == nil:
		return rebootWait
	case s.intent.Sent:
		return rebootAsked
	case !s.server.Settled:
		return rebootAsked // it is on its way down or up
	case s.server.BootType == s.want && s.intent.BootType != string(s.want):
		return rebootAsked // nobody else sets the boot type
	case s.server.BootType != s.want && s.since >= doubtFor/4:
		return rebootAsk // settled, and still the old boot type: it never arrived
	case s.server.BootType != s.want:
		return rebootWait
	case s.boot != s.intent.Boot:
		return rebootAsked // the old boot is gone
	case s.since >= doubtFor && s.intent.Boot == "":
		return rebootAsked // nothing to see: a later phase notices if it was not
	case s.since >= doubtFor:
		return rebootAsk // the old boot lives: it never arrived
	default:
		return rebootWait
	}
}

// askReboot records the intent, asks the provider once and records the
// answer. A stopped server is started instead.
func (a *Activities) askReboot(ctx context.Context, b *beat, in run.PhaseInput, s rebootSeen) (time.Time, error) {
	keys, err := a.provider.SSHKeyIDs(ctx, a.dialer.PublicKeys())
	if err != nil {
		return time.Time{}, err
	}
	it := &run.Intent{
		Action: "reboot into " + string(s.want), At: time.Now().UTC(), Attempt: activity.GetInfo(ctx).Attempt,
		BootType: string(s.server.BootType), Boot: s.boot,
	}
	if err := b.commit(ctx, it); err != nil {
		return time.Time{}, err
	}
	// A worker that was frozen here must not ask after another one has.
	if late := time.Since(it.At); late > run.HeartbeatTimeout/2 {
		return time.Time{}, fault.Retry("%s passed between the intent to %s and the request, so it was not sent", late.Round(time.Second), it.Action)
	}
	request := a.provider.Reboot
	if s.server.Status == provider.StatusStopped {
		request = a.provider.Start
	}
	if err := request(ctx, in.Node.Zone, in.Node.ServerID, s.want, keys); err != nil {
		if !provider.MaybeDone(err) {
			// Surely nothing was done: the next attempt may ask.
			_ = b.commit(ctx, nil)
		}
		return time.Time{}, err
	}
	it.Sent = true
	if err := b.commit(ctx, it); err != nil {
		return it.At, nil //nolint:nilerr // asked for all the same; the phase's result says so
	}
	return it.At, nil
}

// unusable says why a server cannot be rebooted and will not become so.
func unusable(in run.PhaseInput, s provider.Server) error {
	if !s.Settled || s.Usable || s.Status == provider.StatusStopped {
		return nil
	}
	return fault.Operator("look at the server in the provider's console and mend it there, then retry",
		"server %s (%s) is %q at the provider and takes no reboot", in.Node.ServerName, in.Node.ServerID, s.Status)
}
