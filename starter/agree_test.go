package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// testMoreErased: a corrected lot file that lets a run erase what nobody has
// agreed to is asked about, and until then the run stays where it is.
func testMoreErased(t *testing.T, c *cluster, s *script) {
	const name = "stuck-more"
	path := lottest.Lot(t, name, 2)
	rename(t, path, "0000-4000-8000", "0012-4000-8000")
	require.Equal(t, exitStuck, newConsole(t, c.address).starter("provision", "--batch", path, "-y"))
	// Of both nodes: the one that is not let go on is not asked about.
	rename(t, path, "}\n    config", "}\n    reprovision: true\n    config")
	rename(t, path, "name: metal-2}\n", "name: metal-2}\n    reprovision: true\n")
	retry := []string{"retry", name, "--stuck", "--batch", path}

	k := newConsole(t, c.address)
	require.Equal(t, exitRefused, k.starter(retry...))
	require.Contains(t, k.out.String(), "Lot stuck-more: 1 server in fr-par-2 to become Talos nodes. What is ERASED:")
	require.Contains(t, k.out.String(), "node-2  metal-2")
	require.NotContains(t, k.out.String(), "node-1")
	require.Contains(t, k.err.String(), "give --yes to erase without being asked")

	k = newConsole(t, c.address).types("no\n")
	require.Equal(t, exitRefused, k.starter(retry...))
	require.Contains(t, k.err.String(), "that is not the lot's name")
	require.Equal(t, 1, passes(t, c, name), "nothing was let go on")

	s.mend(name)
	k = newConsole(t, c.address).types(name + "\n")
	require.Equal(t, exitOK, k.starter(retry...), k.err)
	require.Contains(t, k.out.String(), "node-2 goes on with preflight")
	require.Equal(t, exitOK, newConsole(t, c.address).starter("status", name, "--watch"))
	require.Equal(t, 2, passes(t, c, name))
}

// passes is how often node-2 of a lot went through preflight.
func passes(t *testing.T, c *cluster, lot string) (n int) {
	t.Helper()
	l, err := track.New(c.client, lot).Look(t.Context())
	require.NoError(t, err)
	node, err := pick(l, "node-2")
	require.NoError(t, err)
	for _, p := range node.Status.Timeline {
		if p.Phase == run.Preflight {
			n++
		}
	}
	return n
}

// TestMoreErased: which nodes of a corrected lot file are asked about.
func TestMoreErased(t *testing.T) {
	t.Parallel()
	k := newConsole(t, "")
	path := lottest.Lot(t, "rack-7", 2)
	prepared := func() *prepared {
		p, err := k.prepare(t.Context(), path, nil)
		require.NoError(t, err)
		return p
	}
	was := prepared().in
	stuck := func(change func(*run.Node)) []track.Node {
		var all []track.Node
		for i := range was.Nodes {
			n := was.Node(i).Node
			change(&n)
			all = append(all, track.Node{Node: n, Status: &run.Status{Node: n}})
		}
		return all
	}
	same := stuck(func(*run.Node) {})
	rename(t, path, "name: metal-2}\n", "name: metal-2}\n    reprovision: true\n")
	p := prepared()
	for name, c := range map[string]struct {
		chosen      []track.Node
		anotherDisk bool
		want        []string
	}{
		"reprovision is new":        {chosen: same, want: []string{"node-2"}},
		"it is not let go on":       {chosen: same[:1]},
		"reprovision was there":     {chosen: stuck(func(n *run.Node) { n.Reprovision = true })},
		"its run tells nothing":     {chosen: []track.Node{{Node: same[1].Node}}, want: []string{"node-2"}},
		"another disk, no new rule": {chosen: same, anotherDisk: true, want: []string{"node-2"}},
		"another disk, a new rule": {
			chosen:      stuck(func(n *run.Node) { n.Reprovision, n.Disks.System = true, run.DiskChoice{Serial: "S1"} }),
			anotherDisk: true, want: []string{"node-1", "node-2"},
		},
		"a new rule for the same disk": {
			chosen: stuck(func(n *run.Node) { n.Reprovision, n.Disks.System = true, run.DiskChoice{Serial: "S1"} }),
		},
		"not in the file": {chosen: []track.Node{{Node: run.Node{Name: "node-9"}}}},
	} {
		var names []string
		for _, n := range p.more(c.chosen, c.anotherDisk) {
			names = append(names, n.Run.Name)
		}
		require.Equal(t, c.want, names, name)
	}
}
