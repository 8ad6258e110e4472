package provider

import (
	"context"
	"errors"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
)

const (
	// patience is how long a call waits for its turn. Whoever has to wait
	// longer is sent away, and comes back through the task queue.
	patience = time.Minute
	// longestHold caps how long one answer of the provider holds all calls.
	longestHold = 5 * time.Minute
)

// Paced is a provider whose calls keep to a pace. An answer that asks to slow
// down holds all of them for as long as it says, and calls throttled.
//
// What changes a server does not wait: its intent is recorded already, and a
// look at the server, which has waited, goes before it.
func Paced(p Provider, pace *Pace, throttled func()) Provider { return &paced{p, pace, throttled} }

type paced struct {
	Provider

	pace      *Pace
	throttled func()
}

// turn waits until a call may go out.
func (p *paced) turn(ctx context.Context) error {
	wait, ok := p.pace.take(time.Now(), patience)
	if !ok {
		return fault.Retry("the provider was not asked: it answers 429 (too many requests), so calls wait for their turn: %w", &Throttled{After: wait.Round(time.Second)})
	}
	if wait == 0 {
		return nil
	}
	return pause.For(ctx, wait)
}

// goAhead counts a call that does not wait.
func (p *paced) goAhead() { p.pace.take(time.Now(), longestHold) }

// saw looks at an answer.
func (p *paced) saw(err error) error {
	if t, ok := errors.AsType[*Throttled](err); ok {
		p.pace.hold(time.Now(), min(t.After, longestHold))
		p.throttled()
	}
	return err
}

// Describe implements Provider.
func (p *paced) Describe(ctx context.Context, zone, serverID string) (Server, error) {
	if err := p.turn(ctx); err != nil {
		return Server{}, err
	}
	server, err := p.Provider.Describe(ctx, zone, serverID)
	return server, p.saw(err)
}

// Networks implements Provider.
func (p *paced) Networks(ctx context.Context, zone, serverID string) ([]Network, error) {
	if err := p.turn(ctx); err != nil {
		return nil, err
	}
	networks, err := p.Provider.Networks(ctx, zone, serverID)
	return networks, p.saw(err)
}

// List implements Provider.
func (p *paced) List(ctx context.Context, zone string) (Listing, error) {
	if err := p.turn(ctx); err != nil {
		return Listing{}, err
	}
	listing, err := p.Provider.List(ctx, zone)
	return listing, p.saw(err)
}

// RescuePassword implements Provider.
func (p *paced) RescuePassword(ctx context.Context, zone, serverID string) (string, error) {
	if err := p.turn(ctx); err != nil {
		return "", err
	}
	password, err := p.Provider.RescuePassword(ctx, zone, serverID)
	return password, p.saw(err)
}

// SSHKeyIDs implements Provider.
func (p *paced) SSHKeyIDs(ctx context.Context, publicKeys []string) ([]string, error) {
	if err := p.turn(ctx); err != nil {
		return nil, err
	}
	ids, err := p.Provider.SSHKeyIDs(ctx, publicKeys)
	return ids, p.saw(err)
}

// Reboot implements Provider.
func (p *paced) Reboot(ctx context.Context, zone, serverID string, boot BootType, sshKeyIDs []string) error {
	p.goAhead()
	return p.saw(p.Provider.Reboot(ctx, zone, serverID, boot, sshKeyIDs))
}

// Start implements Provider.
func (p *paced) Start(ctx context.Context, zone, serverID string, boot BootType, sshKeyIDs []string) error {
	p.goAhead()
	return p.saw(p.Provider.Start(ctx, zone, serverID, boot, sshKeyIDs))
}

// Stop implements Provider.
func (p *paced) Stop(ctx context.Context, zone, serverID string) error {
	p.goAhead()
	return p.saw(p.Provider.Stop(ctx, zone, serverID))
}
