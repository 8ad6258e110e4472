package lot

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"golang.org/x/sync/errgroup"

	"github.com/ironlot/ironlot/internal/agent/state"
	"github.com/ironlot/ironlot/internal/kube"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// digestSize is how many hex digits of a config's digest travel with a node:
// enough to tell two configs of one node apart.
const digestSize = 16

// Rendered is a lot with the machine config of every node, in clear.
type Rendered struct {
	Warnings []string // of the lot and of its configs, one sentence each

	nodes       []run.Node
	parts       []parts
	digests     []string // of each node's config, see run.Sealed
	talosconfig []byte
	kubeconfig  []byte // nil: Kubernetes is not asked
}

// Render makes and checks every node's machine config, and checks that the
// talosconfig belongs to the same cluster. Mistakes are reported together,
// as Problems; they quote no secret of a config.
func (l *Lot) Render(ctx context.Context) (*Rendered, error) {
	j := &journal{file: l.File}
	out, err := l.render(ctx, j, nil)
	if err == nil {
		err = j.err()
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// render makes the configs of all nodes but those that are left out, because what
// they are made of is wrong already, and notes their mistakes.
func (l *Lot) render(ctx context.Context, j *journal, leftOut map[string]bool) (*Rendered, error) {
	out := &Rendered{Warnings: append(append([]string{}, l.Warnings...), l.rolloutWarnings()...)}
	files := map[string]talos.Named{}
	client := l.client(j, out)
	kubernetes := l.kubernetes(j, out)
	trusted := kubernetes == nil || len(leftOut) > 0
	nodes := slices.DeleteFunc(slices.Clone(l.Nodes), func(n Node) bool { return leftOut[n.field] })
	configs, errs, err := renderAll(ctx, j, nodes, files)
	if err != nil {
		return nil, err
	}
	for i, n := range nodes {
		config := configs[i]
		j.note(n.configAt, errs[i])
		if config == nil {
			continue
		}
		n.checkConfig(j, config)
		if client != nil {
			j.note(l.talosconfigAt, client.MatchesConfig(config))
		}
		trusted = trusted || kubernetes.Trusts(config.KubernetesCA)
		n.Run.ControlPlane = config.ControlPlane()
		n.checkFirst(j, config, client)
		for _, w := range n.lint(config) {
			out.Warnings = append(out.Warnings, n.Run.Name+": "+w)
		}
		out.nodes, out.parts = append(out.nodes, n.Run), append(out.parts, n.parts(files))
		out.digests = append(out.digests, config.SHA256[:digestSize])
	}
	if !trusted {
		out.Warnings = append(out.Warnings, "the kubeconfig does not trust the CA of the configs' cluster.ca: make sure that it is of the cluster which the nodes join")
	}
	return out, nil
}

// checkConfig refuses a config that cannot be delivered as the lot says.
func (n *Node) checkConfig(j *journal, config *talos.Rendered) {
	if n.Run.Delivery == run.ByState && len(config.Bytes) > state.Capacity {
		j.add(n.configAt, "gives node %s a machine config of %d bytes, and STATE is made for at most %d; make it smaller, or use `delivery: maintenance`",
			n.Run.Name, len(config.Bytes), state.Capacity)
	}
}

// kubernetes reads the kubeconfig, nil for none, and makes it self-contained.
func (l *Lot) kubernetes(j *journal, out *Rendered) *kube.Kubeconfig {
	if l.Kubeconfig == "" {
		return nil
	}
	data, err := readFile(l.Kubeconfig)
	if err != nil {
		j.note(l.kubeconfigAt, err)
		return nil
	}
	k, err := kube.Read(data, filepath.Dir(l.Kubeconfig))
	if err == nil {
		out.kubeconfig, err = k.Encode()
	}
	j.note(l.kubeconfigAt, err)
	if err != nil {
		return nil
	}
	return k
}

// client reads the talosconfig and keeps the context that the lot names: no
// key of another cluster travels with the run. Nil: there is none to compare with.
func (l *Lot) client(j *journal, out *Rendered) *talos.ClientConfig {
	if l.Talosconfig == "" {
		return nil // which is noted
	}
	data, err := readFile(l.Talosconfig)
	if err != nil {
		j.note(l.talosconfigAt, err)
		return nil
	}
	client, err := talos.ParseTalosconfig(data, l.Context)
	if err != nil {
		j.note(l.talosconfigAt, err)
		return nil
	}
	all, err := clientconfig.FromBytes(data)
	if err == nil {
		one := clientconfig.Config{Context: client.Context, Contexts: map[string]*clientconfig.Context{client.Context: all.Contexts[client.Context]}}
		out.talosconfig, err = one.Bytes()
	}
	if err != nil {
		j.add(l.talosconfigAt, "cannot be written again with the one context; make a new one with `talosctl config new`")
		return nil
	}
	return client
}

// renderAll makes the machine config of every node, or says why not, on all of
// the computer's cores.
func renderAll(ctx context.Context, j *journal, nodes []Node, files map[string]talos.Named) ([]*talos.Rendered, []error, error) {
	for _, n := range nodes {
		n.read(j, files)
	}
	configs, errs := make([]*talos.Rendered, len(nodes)), make([]error, len(nodes))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, n := range nodes {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			p := n.parts(files)
			configs[i], errs[i] = talos.Render(p.shared.Input(p.own, n.Run.Name, n.Run.Values(0)))
			return nil
		})
	}
	return configs, errs, group.Wait()
}

// read reads the files of a node's config that have not been read yet.
func (n *Node) read(j *journal, files map[string]talos.Named) {
	for _, path := range append([]string{n.Config}, n.Patches...) {
		if _, ok := files[path]; ok {
			continue
		}
		data, err := readFile(path)
		if err != nil {
			j.note(n.configAt, fmt.Errorf("%s: %w", path, err))
		}
		files[path] = talos.Named{Name: path, Data: data}
	}
}

// note adds every error of a joined one at a place.
func (j *journal) note(at place, err error) {
	if err == nil {
		return
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range all.Unwrap() {
			j.note(at, err)
		}
		return
	}
	j.add(at, "%s", strings.Join(strings.Fields(err.Error()), " "))
}

// checkFirst refuses to bootstrap what cannot be the first node of a cluster.
func (n *Node) checkFirst(j *journal, config *talos.Rendered, client *talos.ClientConfig) {
	if !n.Run.Bootstrap {
		return
	}
	if !config.ControlPlane() {
		j.add(n.firstAt, "is true for node %s, whose config makes it a %s, and only a control plane can start a cluster; move it to one",
			n.Run.Name, config.MachineType)
	}
	if client != nil && !client.Admin() {
		j.add(n.firstAt, "needs a talosconfig with the role os:admin, and context %q has %s; use one from `talosctl gen config`",
			client.Context, strings.Join(client.Roles, ", "))
	}
}

// lint gives the warnings of a config, and those about how it fits the lot.
func (n *Node) lint(config *talos.Rendered) []string {
	warnings := append(config.Warnings, config.VersionTraps(n.Run.Image.URL)...)
	names := make([]string, 0, len(config.UserVolumes))
	for _, volume := range config.UserVolumes {
		names = append(names, volume.Name)
	}
	if len(names) > 0 && n.Run.Disks.Secondary == run.Keep {
		warnings = append(warnings, fmt.Sprintf("the config has the user volume %s, which needs a disk with free room, and secondaryDisks: keep leaves the old content on all but the system disk",
			strings.Join(names, ", ")))
	}
	return warnings
}

// parts is what a node's config is made of.
type parts struct {
	key         string // equal for nodes with equal shared parts
	shared, own talos.Bundle
}

// parts tells what the node shares with others from what is its own.
func (n *Node) parts(files map[string]talos.Named) parts {
	base := files[n.Config]
	p := parts{key: n.Config, shared: talos.Bundle{Base: &base, Values: n.values}, own: talos.Bundle{Values: n.own}}
	for i, path := range n.Patches {
		if i < n.shared {
			p.shared.Patches = append(p.shared.Patches, files[path])
		} else {
			p.own.Patches = append(p.own.Patches, files[path])
		}
	}
	return p
}

// Seal gives the runs' input: what is secret passes through seal first. What
// several nodes share is sealed once, and their inputs have it in common.
func (r *Rendered) Seal(seal func(plaintext []byte) (string, error)) ([]run.NodeInput, error) {
	talosconfig, err := seal(r.talosconfig)
	if err != nil {
		return nil, fmt.Errorf("the talosconfig cannot be sealed: %w", err)
	}
	var kubeconfig string
	if r.kubeconfig != nil {
		if kubeconfig, err = seal(r.kubeconfig); err != nil {
			return nil, fmt.Errorf("the kubeconfig cannot be sealed: %w", err)
		}
	}
	part := func(b talos.Bundle) (string, error) {
		data, err := b.Encode()
		if err != nil {
			return "", err
		}
		return seal(data)
	}
	shared := map[string]string{}
	inputs := make([]run.NodeInput, len(r.nodes))
	for i, node := range r.nodes {
		p := r.parts[i]
		sealed := run.Sealed{Config: shared[p.key], Talosconfig: talosconfig, Kubeconfig: kubeconfig, Digest: r.digests[i]}
		if sealed.Config == "" {
			if sealed.Config, err = part(p.shared); err != nil {
				return nil, fmt.Errorf("the machine config of node %s cannot be sealed: %w", node.Name, err)
			}
			shared[p.key] = sealed.Config
		}
		if !p.own.Empty() {
			if sealed.Own, err = part(p.own); err != nil {
				return nil, fmt.Errorf("the patches of node %s cannot be sealed: %w", node.Name, err)
			}
		}
		inputs[i] = run.NodeInput{Node: node, Sealed: sealed}
	}
	return inputs, nil
}
