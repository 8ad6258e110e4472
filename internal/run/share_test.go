package run_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

func TestShare(t *testing.T) {
	t.Parallel()
	in := run.LotInput{Lot: "l", Nodes: []run.NodeInput{
		{Node: run.Node{Name: "a"}, Sealed: run.Sealed{Config: "cp", Talosconfig: "tc", Digest: "d1"}},
		{Node: run.Node{Name: "b"}, Sealed: run.Sealed{Config: "worker", Own: "b's", Talosconfig: "tc"}},
		{Node: run.Node{Name: "c"}, Sealed: run.Sealed{Config: "worker", Own: "c's", Talosconfig: "tc"}},
	}}
	shared := in.Share()
	require.Len(t, shared.Shared, 2)
	require.Equal(t, "cp", shared.Nodes[0].Sealed.Config, "one node's own stays where it is")
	require.Equal(t, "tc", in.Nodes[0].Sealed.Talosconfig, "the input is not changed")
	data, err := json.Marshal(shared)
	require.NoError(t, err)
	var back run.LotInput
	require.NoError(t, json.Unmarshal(data, &back))
	for i, want := range in.Nodes {
		require.Equal(t, want, back.Node(i))
		require.Equal(t, want, in.Node(i), "one that shares nothing works as well")
	}
	require.Equal(t, shared, shared.Share(), "twice is once")
}

// TestShareKeepsWhatAllNodesAreToldOnce: what one node is told otherwise, or
// not at all, stays with the nodes.
func TestShareKeepsWhatAllNodesAreToldOnce(t *testing.T) {
	t.Parallel()
	node := func(name string, reprovision bool, boot run.BootPolicy) run.NodeInput {
		return run.NodeInput{Node: run.Node{Lot: "l", Name: name, Zone: "z", Image: run.Image{URL: "u"}, Reprovision: reprovision, Boot: boot}}
	}
	in := run.LotInput{Lot: "l", Nodes: []run.NodeInput{
		node("a", true, run.BootPolicy{Reboots: 1}), node("b", false, run.BootPolicy{Reboots: 1}), node("c", true, run.BootPolicy{}),
	}}
	shared := in.Share()
	require.Equal(t, run.Node{Lot: "l", Zone: "z", Image: run.Image{URL: "u"}}, shared.Common)
	require.Equal(t, run.Node{Name: "b", Boot: run.BootPolicy{Reboots: 1}}, shared.Nodes[1].Node)
	require.Equal(t, in.Nodes, shared.Whole())
	alone := run.LotInput{Lot: "l", Nodes: in.Nodes[:1]}.Share()
	require.Equal(t, "a", alone.Nodes[0].Node.Name, "a node alone shares nothing")
}

func TestValues(t *testing.T) {
	t.Parallel()
	n := run.Node{Name: "n", Lot: "l", Zone: "z", ServerID: "i", ServerName: "s"}
	require.NotContains(t, n.Values(7), "vlan")
	n.VLAN = run.VLANAuto
	for vlan, want := range map[uint32]uint32{0: 1, 7: 7} {
		require.Equal(t, map[string]string{"name": "n", "lot": "l", "zone": "z", "server.id": "i", "server.name": "s", "vlan": fmt.Sprint(want)}, n.Values(vlan))
	}
}

func TestSameConfig(t *testing.T) {
	t.Parallel()
	was := run.Sealed{Config: "a", Own: "b", Digest: "d1"}
	for name, c := range map[string]struct {
		is   run.Sealed
		same bool
	}{
		"the same":            {was, true},
		"sealed anew":         {run.Sealed{Config: "x", Own: "y", Digest: "d1"}, true},
		"another kubeconfig":  {run.Sealed{Config: "a", Own: "b", Digest: "d1", Kubeconfig: "k"}, true},
		"another config":      {run.Sealed{Config: "x", Own: "b", Digest: "d2"}, false},
		"another patch":       {run.Sealed{Config: "a", Own: "y", Digest: "d2"}, false},
		"of an older starter": {run.Sealed{Config: "x", Own: "b"}, false},
	} {
		require.Equal(t, c.same, was.SameConfig(c.is), name)
	}
	require.False(t, run.Sealed{Config: "a"}.SameConfig(run.Sealed{Config: "b"}), "no digests are no same digests")
}
