package show_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
)

func TestCheckSaysWhatWouldBeDone(t *testing.T) {
	t.Parallel()
	node := func(name string) lot.Node {
		return lot.Node{Run: run.Node{Name: name, ServerName: "em-" + name, Disks: run.DiskPolicy{System: run.DiskChoice{Smallest: true}, Secondary: run.Blank}}}
	}
	l := &lot.Lot{Name: "rack", Nodes: []lot.Node{node("a"), node("b"), node("c"), node("d")}}
	text := show.Check(l, run.LotCheck{Nodes: []run.NodeCheck{
		{Name: "a", Facts: run.Facts{
			System: &run.Disk{Serial: "S1", Size: 4e11}, Secondary: []run.Disk{{Serial: "S2", Size: 1e12}},
			Rescue:    &run.RescueBoot{Reused: true},
			Preflight: &run.Checked{Config: &run.ConfigPlan{Type: "worker", SHA256: "aaaa", Running: "bbbb", Changes: []string{"machine.token"}}},
		}},
		{Name: "b", Facts: run.Facts{Preflight: &run.Checked{Config: &run.ConfigPlan{Type: "worker", SHA256: "aaaa"}}}},
		{Name: "d", Facts: run.Facts{Ready: &run.NodeReady{NodeName: "d", TalosVersion: "v1.13.8"}}},
		{Name: "c", Problem: &run.Problem{Message: "server c is protected\x1b", Remedy: "take it off"}},
	}})
	for _, want := range []string{
		"erase    S1 (372.5 GiB) for Talos, S2 (931.3 GiB) to an empty GPT",
		"reboots  1: into Talos; the server is in rescue already",
		"the server runs bbbb, which differs in machine.token",
		"erase    the smallest for Talos, all others to an empty GPT; serials are known once the server is in rescue",
		"reboots  2: into rescue, into Talos",
		"REFUSED  server c is protected\n",
		"READY    it is this lot's node d with the lot's config, Talos v1.13.8: it is left alone, nothing is erased\n",
		"3 of 4 nodes pass preflight. Nothing was touched.",
	} {
		require.Contains(t, text, want)
	}
}
