package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sharedPrefix starts the name of a sealed value that is kept once for the
// lot; a sealed value itself starts otherwise.
const sharedPrefix = "shared:"

// Share keeps sealed values that several nodes have once for the lot, so that
// a lot of a thousand nodes stays within Temporal's limit of 2 MiB.
func (in LotInput) Share() LotInput {
	uses := map[string]int{}
	for _, n := range in.Nodes {
		for _, value := range []string{n.Sealed.Config, n.Sealed.Own, n.Sealed.Talosconfig} {
			uses[value]++
		}
	}
	names := map[string]string{}
	share := func(value string) string {
		if uses[value] < 2 || value == "" || strings.HasPrefix(value, sharedPrefix) {
			return value
		}
		if names[value] == "" {
			names[value] = fmt.Sprint(sharedPrefix, len(names)+1)
		}
		return names[value]
	}
	in.Nodes = slices.Clone(in.Nodes)
	for i := range in.Nodes {
		s := &in.Nodes[i].Sealed
		s.Config, s.Own, s.Talosconfig = share(s.Config), share(s.Own), share(s.Talosconfig)
	}
	if in.Shared = maps.Clone(in.Shared); in.Shared == nil {
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
	n.Sealed = Sealed{Config: whole(n.Sealed.Config), Own: whole(n.Sealed.Own), Talosconfig: whole(n.Sealed.Talosconfig)}
	return n
}
