package show

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// waiting lots: a canary is at work, then it is stuck, then there is no place, and
// at last nobody waits.
func waitingLots() []track.Lot {
	queued := track.Node{Node: run.Node{Name: "b"}, State: run.Queued}
	lot := func(waits ...track.Wait) track.Lot {
		l := track.Lot{Name: "l", Open: true, Waits: waits}
		if waits != nil {
			l.Nodes = []track.Node{queued}
		}
		return l
	}
	canary := track.Wait{Cause: run.WaitsForCanary, Why: "the canary a is not Ready yet", Nodes: []string{"b", "c"}}
	stuck := canary
	stuck.Why, stuck.Remedy = "the canary a is stuck", "retry it"
	room := track.Wait{Cause: run.WaitsForRoom, Why: "1 may be at work at once", Nodes: []string{"b"}}
	return []track.Lot{lot(canary), lot(canary), lot(stuck), lot(room), lot([]track.Wait{}...), lot()}
}

// TestLinesOfNodesThatWait: each cause is told once, with what to do or that there
// is nothing to do.
func TestLinesOfNodesThatWait(t *testing.T) {
	t.Parallel()
	lots := waitingLots()
	lots[4].Nodes = lots[0].Nodes // a place is free for a moment
	var out bytes.Buffer
	v := &Plain{Out: &out, memory: memory{seen: map[string]string{"b": "seen"}}}
	for _, l := range lots {
		l.Nodes = append([]track.Node{}, l.Nodes...)
		v.seen["b"] = ""
		require.NoError(t, v.Show(l, start()))
	}
	var lines []byte
	for line := range bytes.Lines(out.Bytes()) {
		if bytes.Contains(line, []byte("lot l: ")) {
			lines = append(lines, line...)
		}
	}
	const at = "2026-12-01T12:00:00Z  lot l: "
	require.Equal(t, at+"2 nodes wait because the canary a is not Ready yet; nodes start by themselves after that\n"+
		at+"2 nodes wait because the canary a is stuck; retry it\n"+
		at+"1 node waits because 1 may be at work at once; nodes start by themselves as others end\n"+
		at+"it goes on\n", string(lines))
	require.Equal(t, "\n2 nodes wait because the canary a is stuck; retry it.\n", Waits(lots[2]))
}

// TestProgramsLearnWhyNodesWait from an event of the lot and from the result.
func TestProgramsLearnWhyNodesWait(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := &Events{Encode: json.NewEncoder(&out).Encode}
	l := waitingLots()[2]
	l.Nodes[0].Waits = l.Waits[0].Why
	require.NoError(t, v.Show(l, start()))
	require.Equal(t, `{"event":"lot","time":"2026-12-01T12:00:00Z","lot":"l","waits":"2 nodes wait because the canary a is stuck; retry it"}
{"event":"node","time":"2026-12-01T12:00:00Z","lot":"l","node":"b","state":"queued","waits":"the canary a is stuck"}
`, out.String())
	require.Equal(t, l.Waits, ResultOf(l, "", start()).Waits)
	require.Equal(t, "the canary a is stuck", Doing(l.Nodes[0]))
	require.Contains(t, Detail(l, l.Nodes[0], start()), "doing     the canary a is stuck\n")
}

// TestPauseOfALotWithoutAQueue says that nothing comes of it.
func TestPauseOfALotWithoutAQueue(t *testing.T) {
	t.Parallel()
	l := track.Lot{Name: "l", Open: true, Paused: &run.Pause{Reason: "lunch"}}
	require.Equal(t, "\nThe lot is paused by a person: lunch; no node waits for that, and `starter resume l` ends it.\n", Waits(l))
	l.Nodes = waitingLots()[0].Nodes
	l.Waits = []track.Wait{{Cause: run.WaitsForResume, Why: "the lot is paused", Remedy: "resume", Nodes: []string{"b"}}}
	require.Equal(t, "\nThe lot is paused by a person: lunch; 1 node waits until `starter resume l` lets it start nodes again.\n", Waits(l))
}

// TestAListFitsATerminal: what says nothing gives way before anything is cut.
func TestAListFitsATerminal(t *testing.T) {
	t.Parallel()
	lots := []track.Summary{
		{Lot: "rack-17-north", State: run.Stuck, Nodes: 1000, Counts: track.Counts{Ready: 997, Stuck: 3}, Started: start(), Stuck: &track.StuckNode{Node: "w-2", Reason: "two disks are alike"}},
		{Lot: "rack-17-south", State: run.Ready, Nodes: 300, Counts: track.Counts{Ready: 300}, Started: start(), Ended: start().Add(time.Hour)},
	}
	text := Lots(lots, start().Add(2*time.Hour), false, 80)
	require.True(t, narrow(text, 80), text)
	require.NotContains(t, text, "…")
	require.NotContains(t, text, "QUEUED")
	require.Regexp(t, `rack-17-north +stuck +997/1000 +3 +2026-12-01 12:00:00 +2h00m`, text)
	lots[0].Counts.Running, lots[0].Counts.Queued = 1, 1
	require.Regexp(t, `rack-17-north +stuck +997/1000 +1 +1 +3 +12-01 12:00 +2h00m`, Lots(lots, start().Add(2*time.Hour), false, 80))
	lots[0].Counts.Refused = 1
	text = Lots(lots, start().Add(2*time.Hour), false, 80)
	require.NotContains(t, text, "…")
	require.Regexp(t, `rack-17-north +stuck +997/1000 +1 +1 +3 +1 +2h00m`, text)
}
