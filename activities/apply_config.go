package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

const (
	// settlesWithin is how long a node may go on showing maintenance, or
	// another certificate, after it took a config; real Talos takes some 10 s.
	settlesWithin = 2 * time.Minute
	// provesWithin is how long mTLS is waited for after the node took the
	// config and closed maintenance. A worker opens its API only once it has
	// reached a control plane: that is wait-ready's to wait for.
	provesWithin = 30 * time.Second
)

// applying is one attempt to bring the config to the node.
type applying struct {
	in      run.PhaseInput
	secrets *secrets
	commit  func(*run.Intent) error // records with Temporal that the config is sent
	taken   time.Time               // the node said that it took the config
	sent    time.Time               // the config was sent, the answer is lost or yes
	left    bool                    // maintenance was seen to end after that
	since   time.Time               // the API has been closed, with the config in STATE
	foreign time.Time               // since when another cluster's certificate shows
}

// applyConfig proves that the node has taken the config and left
// maintenance. It sends the config only to a node in maintenance, and only
// again when it is sure that it has not arrived. A node that was given its
// config in STATE is sent nothing: it must run it already.
func (a *Activities) applyConfig(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	s, err := a.open(in)
	if err != nil {
		return run.PhaseOutput{}, err
	}
	p := &applying{in: in, secrets: s, commit: func(it *run.Intent) error { return b.commit(ctx, it) }}
	p.recall(b.intent())
	for deadline := bound(ctx); ; {
		seen, err := talos.Probe(ctx, talosAddr(in))
		if err != nil {
			return run.PhaseOutput{}, err
		}
		b.step("Talos API: " + string(seen.State))
		out, done, err := p.step(ctx, seen)
		if err != nil || done {
			return out, err
		}
		if time.Now().After(deadline) {
			return run.PhaseOutput{}, p.late(seen)
		}
		if err := pause.For(ctx, a.pace.knock()); err != nil {
			return run.PhaseOutput{}, err
		}
	}
}

// recall takes up what an earlier attempt recorded: that it sent the config, of
// which it is to be seen whether it arrived, and that the node took it.
func (p *applying) recall(it *run.Intent) {
	if it == nil {
		return
	}
	p.sent = it.At
	if it.Sent {
		p.taken = it.At
	}
}

// step acts on one look at the node.
func (p *applying) step(ctx context.Context, seen talos.Observation) (out run.PhaseOutput, done bool, err error) {
	switch seen.State {
	case talos.Maintenance:
		if p.in.Node.Delivery == run.ByState {
			return out, false, notInState(p.in)
		}
		if !p.sent.IsZero() && time.Since(p.sent) < settlesWithin {
			return out, false, nil // it took the config, or may have
		}
		return out, false, p.send(ctx)
	case talos.Configured:
		p.left = true
		return p.prove(ctx)
	default:
		if p.in.Node.Delivery == run.ByState {
			return p.dark()
		}
		p.left = p.left || !p.sent.IsZero()
		if p.left && !p.taken.IsZero() && time.Since(p.taken) > provesWithin {
			return p.done(false), true, nil
		}
		return out, false, nil
	}
}

// dark lets wait-ready wait for a node with its config in STATE whose API does
// not open: a worker that has not reached a control plane is like that.
func (p *applying) dark() (out run.PhaseOutput, done bool, err error) {
	if p.since.IsZero() {
		p.since = time.Now()
	}
	if time.Since(p.since) < provesWithin || p.secrets.config.MachineType != "worker" {
		return out, false, nil
	}
	facts := p.in.Facts
	facts.Applied = &run.Applied{ConfigSHA256: p.secrets.config.SHA256, Unproved: true}
	return run.PhaseOutput{Facts: facts, Summary: "config " + short(p.secrets.config.SHA256) +
		" is in STATE; the worker's API is not open, so that it runs it is not proved yet"}, true, nil
}

func notInState(in run.PhaseInput) error {
	return fault.Operator("`starter retry LOT NODE --from reboot-rescue` writes the disk again; if the node waits in maintenance again, use `delivery: maintenance` and report it",
		"node %s at %s waits in maintenance, open to everybody, although its config was written into STATE; nothing was sent to it", in.Node.Name, talosAddr(in))
}

func (p *applying) send(ctx context.Context) error {
	sent := time.Now()
	it := run.Intent{Action: "apply the config", At: sent.UTC()}
	if err := p.commit(&it); err != nil {
		return err
	}
	outcome, err := talos.Apply(ctx, talosAddr(p.in), p.secrets.config.Bytes)
	switch outcome {
	case talos.Accepted:
		p.sent, p.taken = sent, time.Now()
		taken := it
		taken.Sent = true
		_ = p.commit(&taken) // an attempt that does not know it waits longer, no more
		return nil
	case talos.Unknown:
		p.sent = sent
		return nil
	default: // refused, or never asked
		p.sent = time.Time{}
		if err := p.commit(nil); err != nil {
			return err
		}
		if fault.ClassOf(err) == fault.Transient {
			return nil // look again
		}
		return err
	}
}

// prove looks over mTLS whether the node runs exactly the lot's config.
func (p *applying) prove(ctx context.Context) (out run.PhaseOutput, done bool, err error) {
	c, err := talos.Dial(ctx, talosAddr(p.in), p.secrets.client)
	switch {
	case errors.Is(err, talos.ErrForeignIdentity):
		if p.foreign.IsZero() {
			p.foreign = time.Now()
		}
		// Only a node that was sent the config goes on showing its own
		// certificate from maintenance for a moment.
		if p.sent.IsZero() || time.Since(p.foreign) > settlesWithin {
			return out, false, foreignNode(p.in)
		}
		return out, false, nil
	case err != nil && fault.ClassOf(err) == fault.Transient:
		return out, false, ctx.Err()
	case err != nil:
		return out, false, err
	}
	defer func() { _ = c.Close() }()
	p.foreign = time.Time{}
	if err := sameConfig(ctx, c, p.in, p.secrets); err != nil {
		if fault.ClassOf(err) == fault.Transient {
			return out, false, ctx.Err()
		}
		return out, false, err
	}
	return p.done(p.sent.IsZero()), true, nil
}

func (p *applying) done(already bool) run.PhaseOutput {
	facts := p.in.Facts
	facts.Applied = &run.Applied{ConfigSHA256: p.secrets.config.SHA256, Already: already}
	how := "config " + short(p.secrets.config.SHA256) + " taken, maintenance is over"
	switch {
	case p.in.Node.Delivery == run.ByState:
		how = "the node runs config " + short(p.secrets.config.SHA256) + " out of STATE; maintenance was never open"
	case already:
		how = "the node has config " + short(p.secrets.config.SHA256) + " already"
	}
	if open := facts.Booted; open != nil && !p.taken.IsZero() {
		facts.Applied.WindowSeconds = p.taken.Sub(open.At).Seconds()
		how += fmt.Sprintf(" (maintenance was open for %.1f s)", facts.Applied.WindowSeconds)
	}
	return run.PhaseOutput{Facts: facts, Summary: how}
}

func (p *applying) late(seen talos.Observation) error {
	if !p.foreign.IsZero() {
		return foreignNode(p.in)
	}
	if p.in.Node.Delivery == run.ByState {
		return fault.Operator("look at the server's console; `starter retry LOT NODE` looks again, `starter retry LOT NODE --from reboot-rescue` installs it again",
			"node %s at %s did not show within %s that it runs the config in STATE (last seen: %s)",
			p.in.Node.Name, talosAddr(p.in), p.in.Node.Timeouts.ApplyOr(), seen.State)
	}
	if p.sent.IsZero() {
		return fault.Operator("look at the server's console, then `starter retry LOT NODE`; `starter retry LOT NODE --from boot-normal` boots it again",
			"the Talos API of node %s at %s took no config within %s (last seen: %s)",
			p.in.Node.Name, talosAddr(p.in), p.in.Node.Timeouts.ApplyOr(), seen.State)
	}
	return fault.Operator("look at the server's console, then retry, which looks at the node first and repeats nothing blindly",
		"node %s at %s was sent its config and did not show within %s that it runs it (last seen: %s)",
		p.in.Node.Name, talosAddr(p.in), p.in.Node.Timeouts.ApplyOr(), seen.State)
}

// foreignNode is the alarm for a machine that is not the lot's.
func foreignNode(in run.PhaseInput) error {
	how := "somebody else's config reached it while maintenance was open, or an old STATE on one of its disks took it over"
	if in.Node.Delivery == run.ByState {
		how = "an old STATE on another of its disks took it over, or another machine has this address"
	}
	return fault.Operator("treat the machine as in somebody else's hands: look at it before anything else, then `starter retry LOT NODE --from reboot-rescue` to install it again; `delivery: state` never opens maintenance",
		"ALARM: the node at %s runs a config of another cluster than the lot's: %s", talosAddr(in), how)
}

// sameConfig compares what the node runs with the lot's config. A client
// without the admin role may not read it; the cluster's certificate is the
// proof then.
func sameConfig(ctx context.Context, c *talos.Client, in run.PhaseInput, s *secrets) error {
	if !s.client.Admin() {
		return nil
	}
	sum, err := c.ConfigSHA256(ctx)
	if err != nil {
		return err
	}
	if sum != s.config.SHA256 {
		return fault.Operator("apply the lot's config by hand with talosctl and `starter retry LOT NODE`, or `starter retry LOT NODE --from reboot-rescue` to install the node again",
			"node %s runs config %s of this cluster, not the lot's %s", in.Node.Name, short(sum), short(s.config.SHA256))
	}
	return nil
}
