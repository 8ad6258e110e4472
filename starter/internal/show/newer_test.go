package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

func newerRun(state run.State, phase run.Phase) *track.NewerRun {
	return &track.NewerRun{Lot: "rack-2", Node: "b", State: state, Phase: phase, Started: start()}
}

// TestNodesThatAnotherLotHasSince: a Ready that may hold no longer is not left
// standing alone, wherever it is shown.
func TestNodesThatAnotherLotHasSince(t *testing.T) {
	t.Parallel()
	const anew = "lot rack-2 has installed its server anew, in a run of 2026-12-01 12:00:00; see `starter status rack-2 b`"
	require.Equal(t, anew, Newer(*newerRun(run.Ready, run.WaitReady)))
	require.Equal(t, "lot rack-2 has its server now, stuck in write; see `starter status rack-2 b`", Newer(*newerRun(run.Stuck, run.Write)))
	require.Equal(t, "lot rack-2 had its server since, in a run of 2026-12-01 12:00:00 that was aborted in preflight; see `starter status rack-2 b`",
		Newer(*newerRun(run.Aborted, run.Preflight)))

	l := fleet()
	require.Empty(t, TakenOver(l))
	l.Nodes[0].Newer = newerRun(run.Ready, run.WaitReady)
	require.Contains(t, Results(l, start(), 0), "a     metal-a   ready *  3m07s")
	require.Contains(t, Results(l, start(), 80), "STATE          ready *")
	require.Contains(t, Results(l, start(), 40), "a     ready *")
	require.Equal(t, "\na became Ready in this lot, and that may hold no longer: "+anew+"\n", TakenOver(l))
	require.Equal(t, anew, Doing(l.Nodes[0]))
	text := Detail(l, l.Nodes[0], start())
	require.Contains(t, text, "state     ready * wait-ready\n")
	require.Contains(t, text, "since     "+anew+"\n")
	require.Equal(t, l.Nodes[0].Newer, ResultOf(l, "", start()).Nodes[0].Newer)

	var out bytes.Buffer
	v := &Plain{Out: &out}
	require.NoError(t, v.Show(fleet(), start()))
	out.Reset()
	require.NoError(t, v.Show(l, start()))
	require.Equal(t, "2026-12-01T12:00:00Z  a   ready    wait-ready     "+anew+"  [simulated]\n", out.String())

	aborted := rack()
	aborted.Nodes[6].Newer = newerRun(run.Running, run.Stage)
	text = Stops(aborted)
	text = text[strings.Index(text, "\ng is aborted"):]
	require.Contains(t, text, "\n  since then: lot rack-2 has its server now, running in stage")
	require.NotContains(t, text, "what to do")
}

// TestListedLotsWhoseServersOthersHave: the list of lots says so too.
func TestListedLotsWhoseServersOthersHave(t *testing.T) {
	t.Parallel()
	lots := []track.Summary{{Lot: "rack-1", State: run.Ready, Nodes: 3, Counts: track.Counts{Ready: 3}, Started: start(), Ended: start().Add(time.Minute),
		Newer: []track.NewerRun{*newerRun(run.Ready, run.WaitReady), *newerRun(run.Stuck, run.Write), {Lot: "rack-3", State: run.Ready, Phase: run.WaitReady}}}}
	const why = "lot rack-2 has, or had, 2 servers of it since (1 ready, 1 stuck); lot rack-3 has, or had, 1 server of it since (1 ready)"
	require.Regexp(t, `rack-1 +ready \* +3/3 .*`, Lots(lots, start(), false, 0))
	require.Contains(t, Lots(lots, start(), false, 0), why)
	text := Lots(lots, start(), false, 80)
	require.Contains(t, strings.Join(strings.Fields(text), " "), why, "it is not cut")
	require.Regexp(t, `rack-1 +ready \* `, text)
}

// TestInventoryOnANarrowTerminal: columns give way to what matters, and what may
// hold no longer is told.
func TestInventoryOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	items := []track.Item{
		{Node: "rack-1-worker-1", Server: "metal-a", TalosVersion: "v1.13.8", ImageDataSHA256: "0123456789abcdef", Lot: "rack-1", Ready: start(),
			SystemDisk: &run.Disk{Serial: "S1"}, Newer: newerRun(run.Stuck, run.Write)},
		{Node: "rack-1-worker-2", Server: "metal-b", Lot: "rack-1", Ready: start(), Simulated: true},
	}
	require.Equal(t, `NODE               SERVER   TALOS    SYSTEM DISK  READY                LOT
rack-1-worker-1 *  metal-a  v1.13.8  S1           2026-12-01 12:00:00  rack-1
rack-1-worker-2    metal-b                        2026-12-01 12:00:00  rack-1

rack-1-worker-1 * what is listed may hold no longer: lot rack-2 has its
    server now, stuck in write; see `+"`starter status rack-2 b`\n"+Simulated+"\n", Inventory(items, false, 80))
	require.Contains(t, Inventory(items, false, 40), "lot rack-2 has its")
	require.NotContains(t, Inventory(items, false, 200), "may hold no longer", "the column says it")
	require.Contains(t, Elsewhere("rack-0", items[1:]), "server metal-b was a node of lot rack-0, and lot rack-1 has installed it anew as rack-1-worker-2")
}

// TestManyNodesAreNotToldOneByOne: a sentence for each of a thousand is read by
// nobody.
func TestManyNodesAreNotToldOneByOne(t *testing.T) {
	t.Parallel()
	var l track.Lot
	for range 1000 {
		l.Nodes = append(l.Nodes, track.Node{State: run.Ready, Newer: newerRun(run.Ready, run.WaitReady)})
	}
	text := TakenOver(l)
	require.Equal(t, mostTold, strings.Count(text, "became Ready"))
	require.Contains(t, text, "\nand so it is with 980 more\n")
}
