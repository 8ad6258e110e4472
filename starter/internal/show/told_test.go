package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// TestAborting: an abort that takes its time is seen, by people and programs.
func TestAborting(t *testing.T) {
	t.Parallel()
	l := fleet()
	var out bytes.Buffer
	plain := &Plain{Out: &out}
	require.NoError(t, plain.Show(l, start()))
	out.Reset()
	l.Nodes[1].Aborting, l.Nodes[3].Aborting = true, true
	require.NoError(t, plain.Show(l, start()))
	require.Regexp(t, `^\S+  bb +running  write +aborting: .*\n\S+  d +stuck +disk-prep +aborting: .*\n$`, out.String())
	require.False(t, l.Nodes[3].Settled(), "it goes on to its end")
	require.Contains(t, Detail(l, l.Nodes[1], start()), "doing     aborting: ")
	require.True(t, ResultOf(l, "", start()).Nodes[1].Aborting)
}

// TestPlanSparesWhatIsReady: what the last run left Ready is not called ERASED,
// unless the lot file says so.
func TestPlanSparesWhatIsReady(t *testing.T) {
	t.Parallel()
	l := &lot.Lot{Name: "rack-1"}
	for _, name := range []string{"a", "b", "c"} {
		l.Nodes = append(l.Nodes, lot.Node{Run: run.Node{Name: name, ServerName: "metal-" + name, ServerID: "id", Zone: "z", Disks: run.DiskPolicy{System: run.DiskChoice{Smallest: true}}}})
	}
	l.Nodes[2].Run.Reprovision = true
	text := Plan(l, map[string]bool{"b": true, "c": true}, nil, 0)
	require.Contains(t, text, `NODE  SERVER   SERVER ID  SYSTEM DISK   OTHERS
a     metal-a  id         the smallest  ERASED
b     metal-b  id         not erased *  not erased *
c     metal-c  id         the smallest  ERASED
`)
	require.Contains(t, Plan(l, nil, nil, 40), `NODE  SERVER   SYSTEM DISK   OTHERS
a     metal-a  the smallest  ERASED
b     metal-b  the smallest  ERASED
c     metal-c  the smallest  ERASED

SERVER   SERVER ID
metal-a  id
metal-b  id
metal-c  id
`, "the IDs stand below on a narrow terminal")
	require.Contains(t, text, "\n* The last run on this server ended Ready.")
	require.NotContains(t, Plan(l, nil, nil, 0), "*")
}

// TestLeftAlone: a node that was Ready already was not installed.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	n := fleet().Nodes[0]
	require.Equal(t, "Talos v1.13.8", Doing(n))
	n.Phase = run.Preflight
	require.Equal(t, "left alone, was Ready with the lot's config: Talos v1.13.8", Doing(n))
}

// TestATryWithoutProgress has no hole where its progress would stand.
func TestATryWithoutProgress(t *testing.T) {
	t.Parallel()
	n := track.Node{State: run.Running, Attempt: 2, Failure: "no route"}
	require.Equal(t, "try 2; before: no route", Doing(n))
	n.Progress = &run.Progress{Step: "writing"}
	require.Equal(t, "try 2, writing; before: no route", Doing(n))
}

// TestAPauseIsSeen, with who and why, on lines that fit.
func TestAPauseIsSeen(t *testing.T) {
	t.Parallel()
	l := track.Lot{Name: "rack-1", Held: "lunch", Paused: &run.Pause{Reason: "lunch"}}
	text := Wrap(Waits(l), 80)
	require.Contains(t, text, "The lot is paused by a person: lunch")
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len(line), 81)
	}
	l.Paused = &run.Pause{Reason: "2 nodes are stuck", Itself: true}
	require.Contains(t, Waits(l), "paused by itself: 2 nodes are stuck")
	l.Paused = nil
	require.Contains(t, Waits(l), "The queued nodes do not start: lunch; look after that.")
	paused := track.Summary{Lot: "rack-1", State: run.Running, Paused: &run.Pause{Reason: run.PausedByPerson}}
	require.Regexp(t, `rack-1 +paused .*paused by a person\n`, Lots([]track.Summary{paused}, start(), false, 0))
}

// turns is a lot that is paused by a person, then by itself, and resumed.
func turns() []track.Lot {
	l := track.Lot{Name: "rack-1", Lab: true, Open: true}
	person, itself := l, l
	person.Paused = &run.Pause{Reason: "lunch", At: start()}
	itself.Paused = &run.Pause{Reason: "2 nodes are stuck", At: start(), Itself: true}
	return []track.Lot{l, person, person, itself, l}
}

// TestLinesOfAPause: lines tell each turn once, by whom and why.
func TestLinesOfAPause(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	plain := &Plain{Out: &out}
	for _, l := range turns() {
		require.NoError(t, plain.Show(l, start()))
	}
	at := start().Format(time.RFC3339)
	require.Equal(t, at+"  lot rack-1: paused by a person: lunch; no node waits for that, and `starter resume rack-1` ends it\n"+
		at+"  lot rack-1: paused by itself: 2 nodes are stuck; no node waits for that, and `starter resume rack-1` ends it\n"+
		at+"  lot rack-1: it goes on\n", out.String())
}

// TestEventsOfAPause: programs learn the same; a resume is an event without a
// pause.
func TestEventsOfAPause(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	events := &Events{Encode: encoder.Encode}
	for _, l := range turns() {
		require.NoError(t, events.Show(l, start()))
	}
	at := start().Format(time.RFC3339)
	head := `{"event":"lot","time":"` + at + `","lot":"rack-1",`
	require.Equal(t, head+`"paused":{"reason":"lunch","at":"`+at+`"},"simulated":true}`+"\n"+
		head+`"paused":{"reason":"2 nodes are stuck","at":"`+at+`","itself":true},"simulated":true}`+"\n"+
		head+`"simulated":true}`+"\n", out.String())
}
