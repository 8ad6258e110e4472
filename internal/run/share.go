package run

import (
	"cmp"
	"fmt"
	"reflect"
)

// sharedPrefix starts the name of a sealed value that is kept once for the
// lot; a sealed value itself starts otherwise.
const sharedPrefix = "shared:"

// Share keeps what several nodes have in common once for the lot: sealed
// values, and what all nodes are told alike. A lot of a thousand nodes stays
// so within Temporal's limit of 2 MiB.
func (in LotInput) Share() LotInput {
	in.Nodes = in.Whole()
	in.Common, in.Shared = common(in.Nodes), nil
	uses := map[string]int{}
	for _, n := range in.Nodes {
		for _, value := range []string{n.Sealed.Config, n.Sealed.Own, n.Sealed.Talosconfig, n.Sealed.Kubeconfig} {
			uses[value]++
		}
	}
	names := map[string]string{}
	share := func(value string) string {
		if uses[value] < 2 || value == "" {
			return value
		}
		if names[value] == "" {
			names[value] = fmt.Sprint(sharedPrefix, len(names)+1)
		}
		return names[value]
	}
	for i := range in.Nodes {
		in.Nodes[i].Node = fields(in.Nodes[i].Node, in.Common, clearSame)
		s := &in.Nodes[i].Sealed
		s.Config, s.Own, s.Talosconfig, s.Kubeconfig = share(s.Config), share(s.Own), share(s.Talosconfig), share(s.Kubeconfig)
	}
	if len(names) > 0 {
		in.Shared = map[string]string{}
	}
	for value, name := range names {
		in.Shared[name] = value
	}
	return in
}

// Node gives the input of one node, with what it shares put back.
func (in LotInput) Node(i int) NodeInput {
	n := in.Nodes[i]
	whole := func(value string) string { return cmp.Or(in.Shared[value], value) }
	n.Node = fields(n.Node, in.Common, fillZero)
	s := &n.Sealed
	s.Config, s.Own, s.Talosconfig, s.Kubeconfig = whole(s.Config), whole(s.Own), whole(s.Talosconfig), whole(s.Kubeconfig)
	return n
}

// Whole gives the inputs of all nodes, with what they share put back.
func (in LotInput) Whole() []NodeInput {
	nodes := make([]NodeInput, len(in.Nodes))
	for i := range in.Nodes {
		nodes[i] = in.Node(i)
	}
	return nodes
}

// common is what all nodes are told alike: zero where two of them differ.
func common(nodes []NodeInput) Node {
	if len(nodes) < 2 {
		return Node{}
	}
	c := nodes[0].Node
	for _, n := range nodes[1:] {
		c = fields(c, n.Node, clearOther)
	}
	return c
}

// fields changes a node field by field, beside another node.
func fields(n, other Node, change func(field, other reflect.Value)) Node {
	to, from := reflect.ValueOf(&n).Elem(), reflect.ValueOf(other)
	for i := range to.NumField() {
		change(to.Field(i), from.Field(i))
	}
	return n
}

func clearOther(field, other reflect.Value) {
	if !same(field, other) {
		field.SetZero()
	}
}

func clearSame(field, other reflect.Value) {
	if same(field, other) {
		field.SetZero()
	}
}

func fillZero(field, other reflect.Value) {
	if field.IsZero() {
		field.Set(other)
	}
}

func same(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }
