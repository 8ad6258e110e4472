package track

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

// TestWhyNodesWait: in words, with what a person has to do, if anything.
func TestWhyNodesWait(t *testing.T) {
	t.Parallel()
	lunch := &run.Pause{Reason: "lunch"}
	for want, c := range map[string]struct {
		wait   run.Wait
		paused *run.Pause
	}{
		"the lot is paused by a person: lunch | let it start nodes again with `starter resume l`": {run.Wait{Cause: run.WaitsForResume}, lunch},
		"the canary a is not Ready yet | ":       {run.Wait{Cause: run.WaitsForCanary, For: []string{"a"}}, nil},
		"the canaries a, b are not Ready yet | ": {run.Wait{Cause: run.WaitsForCanary, For: []string{"b", "a"}}, nil},
		"the canary a is stuck | let it go on with `starter retry l a`, or do without it: `starter abort l a`, then `starter resume l`": {
			run.Wait{Cause: run.WaitsForCanary, For: []string{"a", "b"}, Stuck: []string{"a"}}, nil},
		"the canaries a, b are stuck | `starter status l` says of each what to do": {run.Wait{Cause: run.WaitsForCanary, Stuck: []string{"a", "b"}}, nil},
		"a, which bootstraps the cluster, is not Ready yet | ":                     {run.Wait{Cause: run.WaitsForBootstrap, For: []string{"a"}}, nil},
		"a, which bootstraps the cluster, is stuck | let it go on with `starter retry l a`": {
			run.Wait{Cause: run.WaitsForBootstrap, For: []string{"a"}, Stuck: []string{"a"}}, nil},
		"the control planes a, b are not Ready yet | ":   {run.Wait{Cause: run.WaitsForControlPlanes, For: []string{"a", "b"}}, nil},
		"2 may be at work at once (rollout.parallel) | ": {run.Wait{Cause: run.WaitsForRoom, Room: 2}, nil},
		"something new | ": {run.Wait{Cause: "something new"}, nil},
	} {
		c.wait.Nodes = []int{1, 7}
		got := waitsOf(run.LotStatus{Lot: "l", Paused: c.paused, Waits: []run.Wait{c.wait}, Nodes: []run.NodeState{{Name: "x"}, {Name: "y"}}})
		require.Len(t, got, 1, want)
		require.Equal(t, want, got[0].Why+" | "+got[0].Remedy)
		require.Equal(t, []string{"y"}, got[0].Nodes, "a node that is not there is left out")
	}
	require.Empty(t, waitsOf(run.LotStatus{Waits: []run.Wait{{Cause: run.WaitsForRoom, Nodes: []int{3}}}}))
}

// TestClusterThatNobodyBootstraps is told where control planes may wait for it,
// and nowhere else.
func TestClusterThatNobodyBootstraps(t *testing.T) {
	t.Parallel()
	status := run.LotStatus{
		Lot: "l", Nodes: []run.NodeState{{Name: "cp-1"}, {Name: "cp-2"}, {Name: "w-1"}},
		Waits: []run.Wait{{Cause: run.WaitsForControlPlanes, For: []string{"cp-1", "cp-2"}, Nodes: []int{2}}},
	}
	lot := func(change func(*Lot)) *Lot {
		l := &Lot{Name: "l", Nodes: []Node{
			{Node: run.Node{Name: "cp-1", ControlPlane: true}, State: run.Running, Phase: run.WaitReady,
				Status: &run.Status{Since: time.Now().Add(-time.Hour)}},
			{Node: run.Node{Name: "cp-2", ControlPlane: true}, State: run.Running, Phase: run.Stage},
			{Node: run.Node{Name: "w-1"}, State: run.Queued},
		}}
		change(l)
		l.wait(status)
		return l
	}
	l := lot(func(*Lot) {})
	require.Equal(t, "no node of the lot bootstraps the cluster: when it is a new one, do it with `talosctl bootstrap` on one of cp-1", l.Waits[0].Remedy)
	require.Equal(t, "the control planes cp-1, cp-2 are not Ready yet", l.Nodes[2].Waits)
	require.Empty(t, l.Nodes[0].Waits)
	for name, change := range map[string]func(*Lot){
		"it is bootstrapped by the lot": func(l *Lot) { l.Nodes[1].Node.Bootstrap = true },
		"one is Ready":                  func(l *Lot) { l.Nodes[1].State = run.Ready },
		"it has just begun":             func(l *Lot) { l.Nodes[0].Status.Since = time.Now() },
		"nobody told since when":        func(l *Lot) { l.Nodes[0].Status = nil },
		"they have not come so far":     func(l *Lot) { l.Nodes[0].Phase = run.Write },
	} {
		require.Empty(t, lot(change).Waits[0].Remedy, name)
	}
}
