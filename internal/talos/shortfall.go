package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/ironlot/ironlot/internal/run"
)

const (
	// cniDir is where containerd and the kubelet look for the CNI's config. Its
	// parent is a mount of Talos and always there.
	cniDir   = "/etc/cni/net.d"
	cniEvery = 5 * time.Second
	// nodeReady is the name of Talos's condition that Kubernetes says Ready.
	nodeReady = "nodeReady"
	taint     = "node.cloudprovider.kubernetes.io/uninitialized"
)

// HasCNI reports whether something has put a CNI config onto the node.
func (c *Client) HasCNI(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	files, err := c.machine.List(ctx, &machine.ListRequest{Root: path.Dir(cniDir), Recurse: true, RecursionDepth: 2})
	if err != nil {
		return false, c.explain(err)
	}
	for {
		file, err := files.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, c.explain(err)
		case path.Dir(file.GetName()) != cniDir || file.GetIsDir():
		case slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(file.GetName())):
			return true, nil
		}
	}
}

// lookForCNI finds out whether a node that is NotReady waits for its CNI. A
// node that does not tell keeps what was known.
func (w *readyWatch) lookForCNI(ctx context.Context, seen *snapshot) {
	node, registered := seen.nodes[seen.nodeName]
	if !registered || node.NodeReady {
		seen.bare = false
		return
	}
	if has, err := w.client.HasCNI(ctx); err == nil {
		seen.bare = !has
	}
}

// judge tells what keeps a node from being done, and what is missing from it
// that the lot accepts.
func (s *snapshot) judge(o ReadyOptions) (unmet []string, accepted []run.Shortfall) {
	if s.bare && slices.Contains(o.Accept, run.NoCNI) {
		return s.unmet(true), []run.Shortfall{run.NoCNI}
	}
	unmet = s.unmet(false)
	for i, condition := range unmet {
		if s.bare && condition == s.notReady() {
			unmet[i] += s.waitsForCNI(o.CloudProvider)
		}
	}
	node, registered := s.nodes[s.nodeName]
	if !o.CloudProvider || !registered || !node.NodeReady || initialized(node.Labels) {
		return unmet, nil
	}
	if slices.Contains(o.Accept, run.Uninitialized) {
		return unmet, []run.Shortfall{run.Uninitialized}
	}
	return append(unmet, fmt.Sprintf("node: %q has no label of a cloud controller manager, so it may still have the taint %s", s.nodeName, taint)), nil
}

// unmet lists what is missing, each with the name that Talos gives it. A node
// that may lack its CNI may be NotReady, and still be booting: Talos's boot
// ends only with a Ready node.
func (s *snapshot) unmet(withoutCNI bool) []string {
	if !s.complete() {
		return []string{"machine: its status is not known yet"}
	}
	var out []string
	booting := withoutCNI && s.machine.Stage == runtime.MachineStageBooting
	if s.machine.Stage != runtime.MachineStageRunning && !booting {
		out = append(out, "stage: "+s.machine.Stage.String())
	}
	for _, condition := range s.machine.Status.UnmetConditions {
		if !withoutCNI || condition.Name != nodeReady {
			out = append(out, condition.Name+": "+condition.Reason)
		}
	}
	if !s.machine.Status.Ready && len(s.machine.Status.UnmetConditions) == 0 {
		out = append(out, "machine: not ready")
	}
	node, registered := s.nodes[s.nodeName]
	switch {
	case s.nodeName == "":
		out = append(out, "node: it has no name yet")
	case s.unregistered:
		out = append(out, "node: the config turns registration in Kubernetes off (skipNodeRegistration)")
	case !registered:
		out = append(out, fmt.Sprintf("node: %q is not registered in Kubernetes", s.nodeName))
	case !node.NodeReady && !withoutCNI:
		out = append(out, s.notReady())
	}
	return out
}

func (s *snapshot) notReady() string { return fmt.Sprintf("node: %q is not Ready", s.nodeName) }

// waitsForCNI names the ordering trap: the cloud controller manager takes the
// taint away that keeps a CNI's pods off the node.
func (s *snapshot) waitsForCNI(cloudProvider bool) string {
	text := ": no CNI has put its config into " + cniDir
	if cloudProvider {
		text += "; the config says cloud-provider: external, whose taint " + taint +
			" keeps the CNI's pods away unless they tolerate it or a cloud controller manager runs"
	}
	return text
}

// initialized reports whether a node has a label that cloud controller
// managers set when they take the taint away. Talos does not show taints.
func initialized(labels map[string]string) bool {
	for label := range labels {
		switch {
		case label == "node.kubernetes.io/instance-type", label == "topology.kubernetes.io/region",
			label == "topology.kubernetes.io/zone", strings.HasPrefix(label, "node.cloudprovider.kubernetes.io/"):
			return true
		}
	}
	return false
}

// CloudProvider reports whether a config makes its node wait for a cloud
// controller manager.
func CloudProvider(cfg config.Provider) bool {
	if external := cfg.Cluster().ExternalCloudProvider(); external != nil && external.Enabled() {
		return true
	}
	return slices.Contains(cfg.Machine().Kubelet().ExtraArgs()["cloud-provider"], "external")
}
