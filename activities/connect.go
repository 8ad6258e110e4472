package activities

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	// machinePoll is how often a machine that answers is tried.
	machinePoll = 400 * time.Millisecond
	// knock bounds one try to open a TCP connection: a machine that comes up
	// between two SYNs is seen by the next try rather than by TCP's backoff.
	knock = 2 * time.Second
	// defaultRescueUser is the provider's documented user of its rescue
	// system, for answers that do not name one.
	defaultRescueUser = "rescue"
)

// target is the server's rescue system. An empty host key trusts the first
// one that is seen.
func (a *Activities) target(in run.PhaseInput, address, user, hostKey string) rescue.Target {
	return rescue.Target{
		Address: address,
		Port:    in.Node.Rescue.Port,
		User:    cmp.Or(user, defaultRescueUser),
		HostKey: hostKey,
		Password: func(ctx context.Context) (string, error) {
			return a.provider.RescuePassword(ctx, in.Node.Zone, in.Node.ServerID)
		},
	}
}

// answers reports whether a TCP port of the server takes a connection.
func answers(ctx context.Context, address string, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// inspect opens a session without a pinned host key and takes the machine's
// inventory, when it is its turn.
func (a *Activities) inspect(ctx context.Context, in run.PhaseInput, user string) (*rescue.Session, api.Inventory, error) {
	defer a.turns.take(ctx, longestQueue, longestTurn)()
	s, err := a.dialer.Connect(ctx, a.target(in, in.Facts.Address, user, ""))
	if err != nil {
		return nil, api.Inventory{}, err
	}
	if err := s.EnsureAgent(ctx); err != nil {
		s.Close()
		return nil, api.Inventory{}, err
	}
	inventory, err := s.Inspect(ctx)
	if err != nil {
		s.Close()
		return nil, api.Inventory{}, err
	}
	return s, inventory, nil
}

// lookForRescue gives the boot ID of the rescue system that answers now, or
// "" when none does.
func (a *Activities) lookForRescue(ctx context.Context, b *beat, in run.PhaseInput, server provider.Server) string {
	if !answers(ctx, in.Facts.Address, in.Node.Rescue.Port) {
		return ""
	}
	b.step("looking whether the server is in rescue already")
	s, inventory, err := a.inspect(ctx, in, server.RescueUser)
	if err != nil {
		return ""
	}
	defer s.Close()
	if !inventory.Root.InRAM {
		return ""
	}
	return inventory.BootID
}

// connectPinned opens a session to the run's rescue boot, and to no other
// one, or goes on with the one of the phase before. It waits for a machine
// that is out of reach, but not for ever.
func (a *Activities) connectPinned(ctx context.Context, b *beat, in run.PhaseInput) (*rescue.Session, error) {
	boot := in.Facts.Rescue
	if boot == nil || boot.HostKey == "" {
		return nil, fault.Lost("the run knows of no rescue boot of server %s", in.Node.ServerName)
	}
	t := a.target(in, in.Facts.Address, boot.User, boot.HostKey)
	for began := time.Now(); ; {
		s, err := a.dialer.Resume(ctx, t)
		if err == nil {
			if err = s.EnsureAgent(ctx); err == nil {
				return s, nil
			}
			s.Close()
		}
		if !passing(err) {
			return nil, err
		}
		if away := time.Since(began); away > in.Node.Timeouts.UnreachableOr() {
			return nil, fault.Lost("server %s has not answered SSH for %s: %w", in.Node.ServerName, away.Round(time.Second), err)
		}
		b.step("waiting for the server to answer SSH again")
		if err := pause.For(ctx, 2*time.Second); err != nil {
			return nil, err
		}
	}
}

// passing reports whether an error of a connection passes by itself.
func passing(err error) bool {
	return errors.Is(err, rescue.ErrNotAnswering) || errors.Is(err, rescue.ErrTransport) ||
		fault.ClassOf(err) == fault.Transient && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
