package talosnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/talos"
)

// Node is a running node of the lab.
type Node struct {
	opts      Options
	gate      *gate
	api       *api // touched by the node's own goroutine alone
	resources *resources
	stop      context.CancelFunc
	stopped   sync.WaitGroup

	applying sync.Mutex           // one apply at a time
	taken    chan config.Provider // the config that maintenance has accepted
	cni      atomic.Bool          // a CNI has put its config onto the node

	mu     sync.Mutex
	config config.Provider // the active one
	etcd   etcdState
}

// Start boots a node. It takes the port at once and returns; everything else
// happens in the node's own time until Stop, or until the context ends.
func Start(ctx context.Context, opts Options) (*Node, error) {
	if opts.Store == nil {
		opts.Store = &MemoryStore{}
	}
	if opts.Trustd == nil {
		opts.Trustd = NewTrustd()
	}
	if opts.Version == "" {
		opts.Version = "v1.13.8"
	}
	ctx, cancel := context.WithCancel(ctx)
	resources, err := newResources(ctx, opts.UUID, opts.Serial)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("making the lab node's state failed: %w", err)
	}
	gate, err := openGate(opts.Addr, opts.Refuse, opts.Wire)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the lab node's Talos API cannot listen: %w", err)
	}
	n := &Node{opts: opts, gate: gate, resources: resources, stop: cancel, taken: make(chan config.Provider, 1)}
	n.stopped.Go(func() {
		if err := n.run(ctx); err != nil && ctx.Err() == nil {
			n.log("halted: " + err.Error())
			<-ctx.Done()
		}
		n.dark(true)
		n.gate.close()
	})
	return n, nil
}

// Addr is the address of the Talos API.
func (n *Node) Addr() string { return n.gate.addr }

// Stop cuts the power: connections end at once, and what the Store does not
// have is lost. It returns when the port is free.
func (n *Node) Stop() {
	n.stop()
	n.stopped.Wait()
}

func (n *Node) log(msg string) {
	if n.opts.Log != nil {
		n.opts.Log(msg)
	}
}

// hold lets a test stop the node at a point.
func (n *Node) hold(point string) {
	if n.opts.Hold != nil {
		n.opts.Hold(point)
	}
}

// run is the node's life.
func (n *Node) run(ctx context.Context) error {
	if err := pause.For(ctx, n.opts.Delays.Boot); err != nil {
		return err
	}
	cfg, err := n.stored()
	if err != nil {
		return err
	}
	if cfg == nil {
		if cfg, err = n.maintain(ctx); err != nil {
			return err
		}
	}
	return n.boot(ctx, cfg)
}

// stored finds the config with which the machine boots, nil for none.
func (n *Node) stored() (config.Provider, error) {
	data := n.opts.Faults.Inject
	if data == nil {
		var err error
		if data, err = n.opts.Store.Load(); err != nil {
			return nil, fmt.Errorf("reading STATE failed: %w", err)
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	cfg, err := configloader.NewFromBytes(data)
	if err != nil {
		return nil, errors.New("the stored machine config is not readable") // its text stays out of the log
	}
	if !cfg.CompleteForBoot() {
		return nil, nil
	}
	n.log("machine config loaded successfully")
	return cfg, nil
}

// maintain waits in maintenance for a config and keeps it. Afterwards the
// maintenance API stays for a moment, then handshakes are reset.
func (n *Node) maintain(ctx context.Context) (config.Provider, error) {
	cert, err := issue("maintenance-service.talos.dev", n.host(), nil)
	if err != nil {
		return nil, err
	}
	if err := n.resources.machine(ctx, runtime.MachineStageMaintenance); err != nil {
		return nil, err
	}
	if err := n.serve(maintenanceTLS(cert)); err != nil {
		return nil, err
	}
	n.log("in maintenance, upload configuration")
	n.hold("maintenance")
	var cfg config.Provider
	if n.opts.Faults.Foreign {
		return n.foreign()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case cfg = <-n.taken:
	}
	n.hold("config taken")
	if lost := n.opts.Faults.AnswerLost; lost {
		n.dark(true)
	} else if err := pause.For(ctx, n.opts.Delays.Answer+n.opts.Delays.Linger); err != nil {
		return nil, err
	}
	n.dark(false)
	return cfg, n.keep(cfg)
}

// foreign takes the config of a cluster that nobody here knows.
func (n *Node) foreign() (config.Provider, error) {
	other, err := NewCluster("somebody-else", "https://192.0.2.1:6443")
	if err != nil {
		return nil, err
	}
	cfg, err := configloader.NewFromBytes(other.ControlPlane)
	if err != nil {
		return nil, err
	}
	n.dark(false)
	return cfg, n.keep(cfg)
}

// keep writes the config to STATE.
func (n *Node) keep(cfg config.Provider) error {
	n.hold("keep config")
	if n.opts.Faults.StateReadOnly {
		return errors.New("formatting STATE failed, the config is not kept")
	}
	data, err := cfg.Bytes()
	if err != nil {
		return err
	}
	if err := n.opts.Store.Save(data); err != nil {
		return fmt.Errorf("writing STATE failed, the config is not kept: %w", err)
	}
	return nil
}

// boot brings up a node that has a config. A worker's API opens only when a
// control plane has signed its certificate.
func (n *Node) boot(ctx context.Context, cfg config.Provider) error {
	n.activate(cfg)
	b := newBooting(n, cfg)
	if err := b.begin(ctx); err != nil {
		return err
	}
	if err := pause.For(ctx, n.opts.Delays.State); err != nil {
		return err
	}
	ca, err := n.authority(ctx, cfg)
	if err != nil {
		return err
	}
	cert, err := issue(b.name, n.host(), &ca)
	if err != nil {
		return err
	}
	if err := n.serve(configuredTLS(cert, cfg)); err != nil {
		return err
	}
	n.log("serving the Talos API with certificates of the config")
	if err := b.finish(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// authority is the CA that signs the node's own certificate: a control plane
// has its key, a worker asks trustd.
func (n *Node) authority(ctx context.Context, cfg config.Provider) (tls.Certificate, error) {
	if ca := cfg.Machine().Security().IssuingCA(); cfg.Machine().Type().IsControlPlane() && ca != nil {
		return tls.X509KeyPair(ca.Crt, ca.Key)
	}
	return n.join(ctx, cfg)
}

// join waits for the control plane, for ever when there is no way to it.
func (n *Node) join(ctx context.Context, cfg config.Provider) (tls.Certificate, error) {
	if n.opts.Faults.NeverJoins || n.opts.VLANs != nil && !sameVLANs(talos.VLANs(cfg), n.opts.VLANs()) {
		n.log("no way to the control plane")
		<-ctx.Done()
		return tls.Certificate{}, ctx.Err()
	}
	return n.opts.Trustd.signer(ctx, cfg)
}

// sameVLANs compares sorted VLANs of a config with those of the server.
func sameVLANs(config, server []uint32) bool {
	server = slices.Clone(server)
	slices.Sort(server)
	return slices.Equal(config, slices.Compact(server))
}

// active is the config that the node runs, nil in maintenance.
func (n *Node) active() config.Provider {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.config
}

func (n *Node) activate(cfg config.Provider) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.config = cfg
}

// replace takes another config on a configured node, for an admin.
func (n *Node) replace(ctx context.Context, cfg config.Provider) error {
	if !cfg.CompleteForBoot() {
		return nil
	}
	if err := n.keep(cfg); err != nil {
		return err
	}
	n.activate(cfg)
	return n.resources.setConfig(ctx, cfg)
}

func (n *Node) host() string {
	if n.opts.Host != "" {
		return n.opts.Host
	}
	host, _, _ := net.SplitHostPort(n.gate.addr)
	return host
}

// name is the node's name in Kubernetes: the configured one, or one made of
// the hardware's UUID.
func (n *Node) name(cfg config.Provider) string {
	if hostname := cfg.NetworkHostnameConfig().Hostname(); hostname != "" {
		first, _, _ := strings.Cut(hostname, ".")
		return first
	}
	id := strings.ReplaceAll(n.opts.UUID, "-", "") + "000000"
	return "talos-" + id[:3] + "-" + id[3:6]
}
