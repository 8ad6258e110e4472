package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/ironlot/ironlot/internal/kube"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	systemUUID = "aabbccdd-1122-3344-5566-778899aabbcc"
	swapped    = "DDCCBBAA-2211-4433-5566-778899AABBCC"
	foreign    = "00000000-0000-0000-0000-000000000001"
)

// readyNode is a node that nothing is missing from.
func readyNode(change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.Labels, n.Spec.ProviderID = "worker-1", map[string]string{"rack": "12"}, "metal://zone/server"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	n.Status.NodeInfo.SystemUUID = systemUUID
	if change != nil {
		change(n)
	}
	return n
}

func TestJudge(t *testing.T) {
	t.Parallel()
	server := kube.Expected{Address: "192.0.2.1", UUID: systemUUID}
	with := func(change func(*kube.Expected)) kube.Expected {
		want := server
		change(&want)
		return want
	}
	notReady := func(n *corev1.Node) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].Reason = corev1.ConditionFalse, "KubeletNotReady"
	}
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	const unproved = "that the node of Kubernetes is this server is not proved: neither its system UUID nor its addresses tell"
	for name, c := range map[string]struct {
		change       func(*corev1.Node)
		want         kube.Expected
		unmet, notes []string
	}{
		"all is well": {nil, with(func(w *kube.Expected) {
			w.Labels, w.ProviderID = map[string]string{"rack": "12"}, "metal://zone/server"
		}), nil, nil},
		"any value, any ID":  {nil, with(func(w *kube.Expected) { w.Labels, w.ProviderID = map[string]string{"rack": ""}, run.AnyProviderID }), nil, nil},
		"NotReady":           {notReady, server, []string{"the node's Ready condition is False (KubeletNotReady)"}, nil},
		"NotReady, accepted": {notReady, with(func(w *kube.Expected) { w.NotReady = true }), nil, nil},
		"unknown": {func(n *corev1.Node) {
			n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
		}, server, []string{"the node's Ready condition is Unknown"}, nil},
		"no condition":           {func(n *corev1.Node) { n.Status.Conditions = nil }, server, []string{"the node has no Ready condition yet"}, nil},
		"uninitialized":          {tainted, server, []string{"the node has the taint node.cloudprovider.kubernetes.io/uninitialized: no cloud controller manager has initialized it"}, nil},
		"uninitialized accepted": {tainted, with(func(w *kube.Expected) { w.Tainted = true }), nil, nil},
		"no label":               {nil, with(func(w *kube.Expected) { w.Labels = map[string]string{"row": ""} }), []string{"the node has no label row"}, nil},
		"another label":          {nil, with(func(w *kube.Expected) { w.Labels = map[string]string{"rack": "13"} }), []string{`the node's label rack is "12", the lot expects "13"`}, nil},
		"no provider ID":         {func(n *corev1.Node) { n.Spec.ProviderID = "" }, with(func(w *kube.Expected) { w.ProviderID = run.AnyProviderID }), []string{"the node has no provider ID"}, nil},
		"another provider ID":    {nil, with(func(w *kube.Expected) { w.ProviderID = "metal://zone/other" }), []string{`the node's provider ID is "metal://zone/server", the lot expects "metal://zone/other"`}, nil},
		"UUID of old SMBIOS":     {func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.Addresses = swapped, nil }, server, nil, nil},
		"address alone":          {func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = foreign }, server, nil, nil},
		"another machine": {func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.Addresses = foreign, nil }, server,
			[]string{"the node's system UUID is " + foreign + ", the server's is " + systemUUID + ": another machine has registered under its name"}, nil},
		"UUID unknown to Talos": {func(n *corev1.Node) { n.Status.Addresses = nil }, with(func(w *kube.Expected) { w.UUID = "" }), nil, []string{unproved}},
		"no UUID in Kubernetes": {func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.Addresses = "", nil }, server, nil, []string{unproved}},
		"everything at once": {func(n *corev1.Node) { notReady(n); n.Labels, n.Spec.ProviderID = nil, "" },
			with(func(w *kube.Expected) {
				w.Labels, w.ProviderID = map[string]string{"b": "1", "a": ""}, run.AnyProviderID
			}),
			[]string{"the node's Ready condition is False (KubeletNotReady)", "the node has no label a", "the node has no label b", "the node has no provider ID"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unmet, notes := kube.Judge(readyNode(c.change), c.want)
			require.Equal(t, c.unmet, unmet)
			require.Equal(t, c.notes, notes)
		})
	}
}
