package talos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	defaultForeignGrace = 3 * time.Minute
	reconnectDelay      = 500 * time.Millisecond
)

// ReadyOptions says when a node counts as Ready.
type ReadyOptions struct {
	Hold         time.Duration   // how long it must stay Ready
	ForeignGrace time.Duration   // how long another certificate is normal; zero: 3 minutes
	Worker       bool            // the node is a worker, whose API opens late
	Accept       []run.Shortfall // what may be missing from a node that is done
	// CloudProvider says that a cloud controller manager initializes the node,
	// and that its labels are to show that it has.
	CloudProvider bool
	Report        func(unmet []string) // called with what is missing, whenever that changes
}

// WaitReady waits until the node at addr is Ready: MachineStatus is running
// and ready, NodeStatus says Ready, and both stay so for the hold time. What
// the options accept may be missing; the outcome names it. It
// reconnects for as long as the context lives: a node that restarts its API,
// or does not serve it yet, is waited for. NeedsOperator ends it early: the
// node refuses the client, or belongs to another cluster. When the context
// ends, the error is Transient and names what is missing.
func WaitReady(ctx context.Context, addr string, cfg *ClientConfig, opts ReadyOptions) (run.NodeReady, error) {
	c, err := newClient(addr, cfg)
	if err != nil {
		return run.NodeReady{}, err
	}
	defer func() { _ = c.Close() }()
	return c.WatchReady(ctx, opts)
}

// WatchReady is WaitReady on an existing client.
func (c *Client) WatchReady(ctx context.Context, opts ReadyOptions) (run.NodeReady, error) {
	if opts.ForeignGrace == 0 {
		opts.ForeignGrace = defaultForeignGrace
	}
	w := &readyWatch{client: c, opts: opts}
	for {
		ready, err := w.follow(ctx)
		if err == nil {
			return ready, nil
		}
		if ctx.Err() != nil {
			return run.NodeReady{}, fault.Retry("the node at %s is not Ready yet (%s): %w",
				c.addr, strings.Join(w.unmet, "; "), context.Cause(ctx))
		}
		if err := w.final(err); err != nil {
			return run.NodeReady{}, err
		}
		select {
		case <-ctx.Done():
			// The end of the wait ends the connection too, and often first:
			// what was missing before is the reason, not that.
		case <-time.After(reconnectDelay):
			w.report([]string{"api: " + err.Error() + w.hint(err)})
		}
	}
}

// readyWatch is one wait over any number of connections.
type readyWatch struct {
	client       *Client
	opts         ReadyOptions
	unmet        []string // as reported last
	reported     bool
	connected    bool // the node has answered
	foreignSince time.Time
}

// final gives the error that no reconnecting can cure, nil for all others.
func (w *readyWatch) final(err error) error {
	if fault.ClassOf(err) == fault.NeedsOperator {
		return err
	}
	if !errors.Is(err, ErrForeignIdentity) {
		w.foreignSince = time.Time{}
		return nil
	}
	if w.foreignSince.IsZero() {
		w.foreignSince = time.Now()
	}
	if time.Since(w.foreignSince) < w.opts.ForeignGrace {
		return nil
	}
	return fault.Operator("find out which machine has this address, and clear old Talos disks on the server",
		"%s has shown another cluster's certificate for %s: %w", w.client.addr, w.opts.ForeignGrace, ErrForeignIdentity)
}

// hint says what keeps a worker's API closed from the start: it has its
// certificate from a control plane.
func (w *readyWatch) hint(err error) string {
	if !w.opts.Worker || w.connected || errors.Is(err, ErrForeignIdentity) {
		return ""
	}
	return "; a worker opens it only when it has reached trustd of a control plane (port 50001): look at its VLAN, the firewall and the cluster's endpoint"
}

// report tells what is missing, when that has changed.
func (w *readyWatch) report(unmet []string) {
	if w.reported && slices.Equal(unmet, w.unmet) {
		return
	}
	w.unmet, w.reported = unmet, true
	if w.opts.Report != nil {
		w.opts.Report(unmet)
	}
}

// follow watches over one connection until the node has been Ready for the
// hold time, or the watch ends with an error.
func (w *readyWatch) follow(ctx context.Context) (run.NodeReady, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan state.Event)
	if err := w.client.watch(ctx, events); err != nil {
		return run.NodeReady{}, w.client.explain(err)
	}
	w.foreignSince, w.connected = time.Time{}, true

	var seen snapshot
	var held <-chan time.Time // runs while nothing is missing
	var accepted []run.Shortfall
	again := time.NewTicker(cniEvery) // Talos has no watch for the CNI's config
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return run.NodeReady{}, ctx.Err()
		case <-held:
			version, err := w.client.Version(ctx) // and the node still answers
			return run.NodeReady{At: time.Now().UTC(), TalosVersion: version.Tag, NodeName: seen.nodeName, Missing: accepted}, err
		case <-again.C:
		case event := <-events:
			if event.Type == state.Errored {
				return run.NodeReady{}, w.client.explain(event.Error)
			}
			seen.take(event)
		}
		w.lookForCNI(ctx, &seen)
		var unmet []string
		unmet, accepted = seen.judge(w.opts)
		switch {
		case len(unmet) > 0:
			held = nil
		case held == nil:
			held = time.After(w.opts.Hold)
		}
		if seen.complete() {
			w.report(unmet)
		}
	}
}

// watch opens the watches that readiness is made of.
func (c *Client) watch(ctx context.Context, events chan<- state.Event) error {
	machine := runtime.NewMachineStatus().Metadata()
	if err := c.state.Watch(ctx, machine, events); err != nil {
		return err
	}
	name := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID).Metadata()
	if err := c.state.Watch(ctx, name, events); err != nil {
		return err
	}
	// The node's own status has the node's name, which is not known yet.
	nodes := resource.NewMetadata(k8s.NamespaceName, k8s.NodeStatusType, "", resource.VersionUndefined)
	return c.state.WatchKind(ctx, nodes, events, state.WithBootstrapContents(true))
}

// snapshot is what the watches have shown so far.
type snapshot struct {
	machine      *runtime.MachineStatusSpec
	nodeName     string
	nodes        map[string]k8s.NodeStatusSpec
	named, noded bool // the watches have told their beginning
	unregistered bool // the config turns registration off
	bare         bool // the node is NotReady and has no CNI config
}

// take adds one event.
func (s *snapshot) take(event state.Event) {
	gone := event.Type == state.Destroyed
	switch r := event.Resource.(type) {
	case *runtime.MachineStatus:
		s.machine = r.TypedSpec()
		if gone {
			s.machine = &runtime.MachineStatusSpec{}
		}
	case *k8s.Nodename:
		s.named, s.nodeName, s.unregistered = true, r.TypedSpec().Nodename, r.TypedSpec().SkipNodeRegistration
		if gone {
			s.nodeName = ""
		}
	case *k8s.NodeStatus:
		if s.nodes == nil {
			s.nodes = map[string]k8s.NodeStatusSpec{}
		}
		s.nodes[r.Metadata().ID()] = *r.TypedSpec()
		if gone {
			delete(s.nodes, r.Metadata().ID())
		}
	}
	s.noded = s.noded || event.Type == state.Bootstrapped
}

// complete reports whether every watch has told its beginning.
func (s *snapshot) complete() bool { return s.machine != nil && s.named && s.noded }
