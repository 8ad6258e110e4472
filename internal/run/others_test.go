package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeftAlone(t *testing.T) {
	t.Parallel()
	node := func(name, server string) Node { return Node{Name: name, Provider: "scaleway", ServerID: server} }
	in := LotInput{
		Nodes: []NodeInput{{Node: node("a", "s1")}, {Node: node("b", "s2")}},
		Others: []Other{
			{Node: node("a", "s9")}, // has another server now
			{Node: node("c", "s2")}, // its server is b now
			{Node: node("d", "s4"), State: Ready},
		},
	}
	require.Equal(t, in.Others[2:], in.LeftAlone())
	require.Equal(t, in.Others[2:], in.Share().LeftAlone(), "what the nodes have in common is put back")
	require.Empty(t, LotInput{Nodes: in.Nodes}.LeftAlone())
}

func TestIdentityTellsNothingElse(t *testing.T) {
	t.Parallel()
	n := Node{Lot: "l", Name: "a", Provider: "scaleway", Zone: "z", ServerID: "s", ServerName: "m", Lab: true, ControlPlane: true}
	told := n
	told.Image, told.Rescue = Image{URL: "http://image.example"}, Rescue{Port: 22}
	require.Equal(t, n, told.Identity())
	require.Equal(t, n.ID(), told.Identity().ID())
}
