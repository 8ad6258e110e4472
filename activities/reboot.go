package activities

import (
	"context"
	"fmt"
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
	rebootStop                    // ask the provider to stop the server first
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

// judgeCycle is judgeReboot for a boot that reboots did not bring: the server
// is stopped, then started.
func judgeCycle(s rebootSeen) rebootStep {
	stopped := s.server.Status == provider.StatusStopped
	switch {
	case !s.server.Settled && s.intent != nil && !s.intent.Stop:
		return rebootAsked // it is starting
	case !s.server.Settled:
		return rebootWait
	case stopped && (s.intent == nil || s.intent.Stop):
		return rebootAsk
	case s.intent == nil:
		return rebootStop
	case s.intent.Stop && (s.since >= doubtFor || !s.intent.Sent && s.since >= doubtFor/4):
		return rebootStop // it never arrived
	case s.intent.Stop:
		return rebootWait
	case s.intent.Sent || !stopped:
		return rebootAsked
	case s.since >= doubtFor/4:
		return rebootAsk
	default:
		return rebootWait
	}
}

// moveOn takes the boot that is wanted one step further, and is done when it
// has been asked for; the intent tells when, and what answered before.
func (a *Activities) moveOn(ctx context.Context, b *beat, in run.PhaseInput, s rebootSeen) (it run.Intent, done bool, err error) {
	if s.intent != nil {
		s.since = time.Since(s.intent.At)
	}
	judge := judgeReboot
	if in.Node.Boot.PowerCycle(in.Boots) {
		judge = judgeCycle
	}
	switch judge(s) {
	case rebootAsked:
		return *s.intent, true, nil
	case rebootAsk:
		b.step("asking for a boot into " + string(s.want))
		it, err := a.askReboot(ctx, b, in, s)
		return it, err == nil, err
	case rebootStop:
		b.step("asking to stop the server, then to start it")
		it := run.Intent{Action: "stop the server", Stop: true, BootType: string(s.server.BootType), Boot: s.boot}
		it, err = a.ask(ctx, b, it, func(ctx context.Context) error {
			return a.provider.Stop(ctx, in.Node.Zone, in.Node.ServerID)
		})
		return it, false, err
	default:
		b.step(fmt.Sprintf("waiting: the server is %q at the provider", s.server.Status))
		return it, false, nil
	}
}

// askReboot asks the provider once for a boot. A stopped server is started.
func (a *Activities) askReboot(ctx context.Context, b *beat, in run.PhaseInput, s rebootSeen) (run.Intent, error) {
	keys, err := a.provider.SSHKeyIDs(ctx, a.dialer.PublicKeys())
	if err != nil {
		return run.Intent{}, err
	}
	action, request := "reboot into ", a.provider.Reboot
	if s.server.Status == provider.StatusStopped {
		action, request = "start into ", a.provider.Start
	}
	it := run.Intent{Action: action + string(s.want), BootType: string(s.server.BootType), Boot: s.boot}
	return a.ask(ctx, b, it, func(ctx context.Context) error {
		return request(ctx, in.Node.Zone, in.Node.ServerID, s.want, keys)
	})
}

// ask records an intent, sends the request once and records the answer.
func (a *Activities) ask(ctx context.Context, b *beat, it run.Intent, request func(context.Context) error) (run.Intent, error) {
	it.At, it.Attempt = time.Now().UTC(), activity.GetInfo(ctx).Attempt
	if err := b.commit(ctx, &it); err != nil {
		return it, err
	}
	// A worker that was frozen here must not ask after another one has.
	limited, cancel := context.WithTimeout(ctx, run.HeartbeatTimeout/2-time.Since(it.At))
	defer cancel()
	if limited.Err() != nil {
		return it, fault.Retry("too much time passed between the intent to %s and the request, so it was not sent", it.Action)
	}
	if err := request(limited); err != nil {
		if !provider.MaybeDone(err) && limited.Err() == nil {
			// Surely nothing was done: the next attempt may ask.
			_ = b.commit(ctx, nil)
		}
		return it, err
	}
	sent := it
	sent.Sent = true
	// Asked for all the same when this fails; the phase's result says so.
	_ = b.commit(ctx, &sent)
	return sent, nil
}

// unusable says why a server cannot be rebooted and will not become so.
func unusable(in run.PhaseInput, s provider.Server) error {
	if !s.Settled || s.Usable || s.Status == provider.StatusStopped {
		return nil
	}
	return fault.Operator("look at the server in the provider's console and mend it there, then retry",
		"server %s (%s) is %q at the provider and takes no reboot", in.Node.ServerName, in.Node.ServerID, s.Status)
}
