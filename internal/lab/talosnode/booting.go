package talosnode

import (
	"context"
	"maps"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/talos"
)

const (
	notRunning = "not running"
	notHealthy = "not healthy"
)

// booting takes a configured node from its first second to Ready, with the
// conditions that the real one names on its way.
type booting struct {
	node *Node
	cfg  config.Provider
	name string
}

func newBooting(n *Node, cfg config.Provider) *booting {
	return &booting{node: n, cfg: cfg, name: n.name(cfg)}
}

// services lists the services, all well but those in trouble.
func (b *booting) services(trouble map[string]string) []service {
	names := []string{"machined", "apid", "containerd", "udevd", "cri", "kubelet"}
	if b.cfg.Machine().Type().IsControlPlane() {
		names = append(names, "etcd", "trustd")
	}
	list := make([]service, len(names))
	for i, name := range names {
		list[i] = service{name: name, problem: trouble[name]}
	}
	return list
}

// begin shows what is missing before anything is up.
func (b *booting) begin(ctx context.Context) error {
	r := b.node.resources
	if err := r.setConfig(ctx, b.cfg); err != nil {
		return err
	}
	if err := r.nodeName(ctx, b.name); err != nil {
		return err
	}
	return b.show(ctx, runtime.MachineStageBooting, false, b.starting(), unmetNode(b.name, "status is not available yet"))
}

func (b *booting) starting() []service {
	return b.services(map[string]string{"cri": notHealthy, "kubelet": notRunning, "etcd": notRunning, "trustd": notRunning})
}

// finish goes on, step by step, to Ready, or as far as the faults let it.
func (b *booting) finish(ctx context.Context) error {
	n, d := b.node, b.node.opts.Delays
	unregistered := unmetNode(b.name, "status is not available yet")
	if err := pause.For(ctx, d.Time); err != nil {
		return err
	}
	n.timeSynced()
	if err := b.show(ctx, runtime.MachineStageBooting, true, b.starting(), unregistered); err != nil {
		return err
	}
	if err := pause.For(ctx, d.Services); err != nil {
		return err
	}
	if n.opts.Faults.KubeletCrash {
		n.log("kubelet exited, restarting, again and again")
		return b.show(ctx, runtime.MachineStageBooting, true, b.services(map[string]string{"kubelet": notRunning}), unregistered)
	}
	if b.cfg.Machine().Type().IsControlPlane() {
		// etcd needs the other members, or a bootstrap.
		waiting := b.services(map[string]string{"etcd": notRunning})
		if err := b.show(ctx, runtime.MachineStageBooting, true, waiting, unregistered); err != nil {
			return err
		}
		if _, err := n.join(ctx, b.cfg); err != nil {
			return err
		}
		if err := n.etcdRuns(ctx); err != nil {
			return err
		}
	}
	if err := b.show(ctx, runtime.MachineStageRunning, true, b.services(nil), unregistered); err != nil {
		return err
	}
	return b.register(ctx)
}

// register makes the node known to Kubernetes, then Ready.
func (b *booting) register(ctx context.Context) error {
	r, d := b.node.resources, b.node.opts.Delays
	if err := pause.For(ctx, d.Register); err != nil {
		return err
	}
	if err := r.node(ctx, b.name, false, nil); err != nil {
		return err
	}
	b.kubelet(false)
	if b.node.opts.Faults.NoCNI {
		b.node.log("no CNI, the node stays NotReady")
		return b.show(ctx, runtime.MachineStageBooting, true, b.services(nil), unmetNode(b.name, "is not ready"))
	}
	b.node.cni.Store(true)
	if err := b.show(ctx, runtime.MachineStageRunning, true, b.services(nil), unmetNode(b.name, "is not ready")); err != nil {
		return err
	}
	if err := pause.For(ctx, d.Ready); err != nil {
		return err
	}
	b.node.hold("ready")
	b.kubelet(true)
	if err := r.node(ctx, b.name, true, b.labels()); err != nil {
		return err
	}
	b.node.log("node is Ready")
	return r.machine(ctx, runtime.MachineStageRunning)
}

// kubelet tells the cluster's Kubernetes of the node.
func (b *booting) kubelet(ready bool) {
	n := b.node
	if n.opts.Kubelet == nil {
		return
	}
	labels := map[string]string{"kubernetes.io/hostname": b.name}
	maps.Copy(labels, b.cfg.Machine().NodeLabels())
	k := Kubelet{
		Name: b.name, Address: n.host(), SystemUUID: n.opts.UUID, Labels: labels, Ready: ready,
		ProviderID: strings.Join(b.cfg.Machine().Kubelet().ExtraArgs()["provider-id"], ""),
		Tainted:    talos.CloudProvider(b.cfg) && (!ready || n.opts.Faults.Uninitialized),
	}
	if ready {
		maps.Copy(labels, b.labels())
	}
	n.opts.Kubelet(k)
}

// labels are those of a cloud controller manager, where one is to initialize
// the node.
func (b *booting) labels() map[string]string {
	if !talos.CloudProvider(b.cfg) || b.node.opts.Faults.Uninitialized {
		return nil
	}
	return map[string]string{"node.kubernetes.io/instance-type": "LAB-SIMULATED"}
}

// show sets the services and the machine's status.
func (b *booting) show(ctx context.Context, stage runtime.MachineStage, timeSynced bool, services []service, node runtime.UnmetCondition) error {
	if err := b.node.resources.services(ctx, services); err != nil {
		return err
	}
	var unmet []runtime.UnmetCondition
	if !timeSynced {
		unmet = append(unmet, runtime.UnmetCondition{Name: "time", Reason: "time is not synced"})
	}
	unmet = append(unmet, unmetServices(services)...)
	return b.node.resources.machine(ctx, stage, append(unmet, node)...)
}
