package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ironlot/ironlot/internal/run"
)

// Expected is what a node's object must agree with.
type Expected struct {
	Labels     map[string]string // an empty value stands for any
	ProviderID string            // exactly; run.AnyProviderID: not empty; empty: not compared
	NotReady   bool              // a NotReady node is done as well
	Tainted    bool              // one with the taint of an uninitialized node is done as well
	Address    string            // of the server
	UUID       string            // of the hardware, as Talos tells it; empty: unknown
}

// uninitialized is the taint that a cloud controller manager takes away.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// Judge compares a node's object with what is expected. What disagrees is in
// unmet; what could not be proved is in notes. Each is one sentence without
// its full stop.
func Judge(node *corev1.Node, want Expected) (unmet, notes []string) {
	if !want.NotReady {
		unmet = append(unmet, ready(node)...)
	}
	if !want.Tainted && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized }) {
		unmet = append(unmet, "the node has the taint "+uninitialized+": no cloud controller manager has initialized it")
	}
	for _, name := range slices.Sorted(maps.Keys(want.Labels)) {
		switch value, has := node.Labels[name]; {
		case !has:
			unmet = append(unmet, "the node has no label "+name)
		case want.Labels[name] != "" && value != want.Labels[name]:
			unmet = append(unmet, fmt.Sprintf("the node's label %s is %q, the lot expects %q", name, value, want.Labels[name]))
		}
	}
	switch id := node.Spec.ProviderID; {
	case want.ProviderID == "":
	case id == "":
		unmet = append(unmet, "the node has no provider ID")
	case want.ProviderID != run.AnyProviderID && id != want.ProviderID:
		unmet = append(unmet, fmt.Sprintf("the node's provider ID is %q, the lot expects %q", id, want.ProviderID))
	}
	return identity(node, want, unmet)
}

// ready looks at the Ready condition.
func ready(node *corev1.Node) []string {
	for _, c := range node.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			return nil
		case c.Reason != "":
			return []string{fmt.Sprintf("the node's Ready condition is %s (%s)", c.Status, c.Reason)}
		default:
			return []string{fmt.Sprintf("the node's Ready condition is %s", c.Status)}
		}
	}
	return []string{"the node has no Ready condition yet"}
}

// identity tells whether the object is of this server: another machine may
// have registered under the name.
func identity(node *corev1.Node, want Expected, unmet []string) (allUnmet, notes []string) {
	uuid := node.Status.NodeInfo.SystemUUID
	switch {
	case want.UUID != "" && sameUUID(uuid, want.UUID):
	case slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == want.Address }):
	case want.UUID != "" && uuid != "":
		return append(unmet, fmt.Sprintf("the node's system UUID is %s, the server's is %s: another machine has registered under its name", uuid, want.UUID)), nil
	default:
		return unmet, []string{"that the node of Kubernetes is this server is not proved: neither its system UUID nor its addresses tell"}
	}
	return unmet, nil
}

// sameUUID compares two UUIDs, in either of SMBIOS's byte orders: before
// version 2.6 the first three fields were told apart by nobody.
func sameUUID(a, b string) bool {
	return strings.EqualFold(a, b) || strings.EqualFold(swapped(a), b)
}

func swapped(uuid string) string {
	fields := strings.Split(uuid, "-")
	if len(fields) != 5 {
		return uuid
	}
	for i := range 3 {
		var out strings.Builder
		for at := len(fields[i]) - 2; at >= 0; at -= 2 {
			out.WriteString(fields[i][at : at+2])
		}
		fields[i] = out.String()
	}
	return strings.Join(fields, "-")
}
