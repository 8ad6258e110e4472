package history

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// recorded reads one of the histories that the replay tests keep.
func recorded(t *testing.T, name string) *Report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "workflows", "testdata", "histories", name))
	require.NoError(t, err)
	h, err := Parse(data)
	require.NoError(t, err)
	r, err := Read(strings.TrimSuffix(name, ".json"), h, time.Time{})
	require.NoError(t, err)
	return r
}

func phases(r *Report) []run.Phase {
	var all []run.Phase
	for _, p := range r.Passes {
		all = append(all, p.Phase)
	}
	return all
}

func TestHappyRun(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ready.json")
	require.Equal(t, run.Ready, r.State)
	require.Equal(t, run.Phases(), phases(r))
	require.Nil(t, r.Problem)
	require.Zero(t, r.Lost.Person)
	require.NotEmpty(t, r.Facts.Written.Serial)
	for _, p := range r.Passes {
		require.Equal(t, Proved, p.Outcome)
		require.NotEmpty(t, p.Summary)
		require.Positive(t, p.Took(r.Read))
		require.EqualValues(t, 1, p.Attempts)
	}
}

func TestRewindShowsWhatWasLost(t *testing.T) {
	t.Parallel()
	r := recorded(t, "rewinds.json")
	require.Equal(t, run.Ready, r.State)
	require.Greater(t, len(r.Passes), len(run.Phases()))
	_, first := Lot{Nodes: []Report{*r}}.FirstFailure()
	require.NotNil(t, first)
	require.Equal(t, string(fault.RescueLost), first.Class)
	require.Positive(t, r.Lost.Failed)
	numbers := map[run.Phase]int{}
	for _, p := range r.Passes {
		numbers[p.Phase]++
		require.Equal(t, numbers[p.Phase], p.Number)
	}
}

func TestStuckAndAborted(t *testing.T) {
	t.Parallel()
	r := recorded(t, "stuck-aborted.json")
	require.Equal(t, run.Aborted, r.State)
	require.Equal(t, []run.Phase{run.Preflight, run.Preflight}, phases(r))
	require.Contains(t, r.Passes[0].Message, "live, configured member")
	require.NotEmpty(t, r.Passes[0].Remedy)
	require.Equal(t, "retry", r.Steers[0].What)
	require.Equal(t, Steer{At: r.Steers[1].At, What: "abort", By: "someone on vm", Text: "test"}, r.Steers[1])
	require.Contains(t, r.Problem.Message, "aborted in preflight")
}

// TestAPersonIsWaitedFor: an open wait counts until now, that of a file until
// its last event, and no form says that no time was lost.
func TestAPersonIsWaitedFor(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "workflows", "testdata", "histories", "stuck-aborted.json"))
	require.NoError(t, err)
	whole, err := Parse(data)
	require.NoError(t, err)
	failed := slices.IndexFunc(whole.Events, func(e *historypb.HistoryEvent) bool {
		return e.EventType == enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED
	})
	require.Positive(t, failed)
	at := whole.Events[failed].EventTime.AsTime()
	stuck := &historypb.History{Events: whole.Events[:failed+1]}
	for name, c := range map[string]struct {
		now  time.Time
		want time.Duration
		says string
	}{
		"from a file":           {time.Time{}, 0, "It waits for a person since " + clock(at)},
		"from Temporal":         {at.Add(90 * time.Minute), 90 * time.Minute, "1h30m0s waiting for a person"},
		"a clock that is later": {at.Add(-time.Minute), 0, "It waits for a person since"},
	} {
		r, err := Read("x", stuck, c.now)
		require.NoError(t, err)
		require.Equal(t, run.Stuck, r.State, name)
		require.Equal(t, c.want, r.Lost.Person, name)
		require.Equal(t, at.Add(c.want), r.Read, name)
		var md, html bytes.Buffer
		l := Lot{Name: "lot", Nodes: []Report{*r}}
		require.NoError(t, l.Markdown(&md))
		require.NoError(t, l.HTML(&html))
		for _, text := range []string{md.String(), html.String()} {
			require.Contains(t, text, c.says, name)
			require.NotContains(t, text, "No time was lost", name)
		}
	}
	ended, err := Read("x", whole, time.Now())
	require.NoError(t, err)
	require.Equal(t, ended.Ended, ended.Read, "a run that has ended loses no more time")
	require.NotContains(t, ended.lost(), "It waits")
}

// TestAttemptsTakeTimeToo: what a pass took before its last attempt is lost, and
// whether an open one loses any is not known.
func TestAttemptsTakeTimeToo(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	r := reader{report: Report{State: run.Running, Read: at.Add(time.Hour), Passes: []Pass{
		{Phase: run.Stage, Asked: at, Began: at.Add(90 * time.Second), Ended: at.Add(100 * time.Second), Attempts: 3, Outcome: Proved},
		{Phase: run.Write, Asked: at.Add(100 * time.Second), Outcome: Open},
	}}}
	r.account()
	require.Equal(t, Lost{Retried: 90 * time.Second}, r.report.Lost)
	require.Equal(t, "Time lost: 1m30s in attempts that were tried again. It is in write since 2026-12-01 12:01:40.", r.report.lost())
	r.report.Lost = Lost{}
	require.Equal(t, "It is in write since 2026-12-01 12:01:40.", r.report.lost())
}

func TestWrittenForms(t *testing.T) {
	t.Parallel()
	l := Lot{Name: "recorded", Nodes: []Report{*recorded(t, "ready.json"), *recorded(t, "rewinds.json"), *recorded(t, "stuck-aborted.json")}}
	var md, html bytes.Buffer
	require.NoError(t, l.Markdown(&md))
	require.NoError(t, l.HTML(&html))
	for _, text := range []string{md.String(), html.String()} {
		require.Contains(t, text, "simulated")
		require.Contains(t, text, "3 nodes: 2 ready, 1 aborted")
		require.Contains(t, text, "live, configured member")
		for _, p := range run.Phases() {
			require.Contains(t, text, string(p))
		}
	}
	require.NotContains(t, html.String(), "http://www", "the page loads nothing")
	out, err := json.Marshal(l)
	require.NoError(t, err)
	var back Lot
	require.NoError(t, json.Unmarshal(out, &back))
	require.Equal(t, l.Nodes[1].Passes, back.Nodes[1].Passes)
}

// TestWhatStoppedComesFirst: the decisive error is the first thing to read.
func TestWhatStoppedComesFirst(t *testing.T) {
	t.Parallel()
	stuck := Report{Node: run.Node{Name: "stuck-node"}, State: run.Stuck, Problem: &run.Problem{
		Phase: run.Write, Message: "the disk is broken", Remedy: "replace the disk", Tail: "sda: error",
	}}
	l := Lot{Name: "rack", Nodes: []Report{*recorded(t, "ready.json"), stuck}}
	var md, html bytes.Buffer
	require.NoError(t, l.Markdown(&md))
	require.NoError(t, l.HTML(&html))
	ready := l.Nodes[0].Node.Name
	for _, text := range []string{md.String(), html.String()} {
		require.Less(t, strings.Index(text, "the disk is broken"), strings.Index(text, ready))
		require.Contains(t, text, "replace the disk")
	}
	require.Less(t, strings.Index(html.String(), `<h2 id="stuck-node"`), strings.Index(html.String(), `<h2 id="`+ready+`"`))
	require.Contains(t, html.String(), "sda: error")
	require.Equal(t, "ready", string(l.Nodes[0].State), "the report's own order stays")
}

func TestTextOfMachinesIsEscaped(t *testing.T) {
	t.Parallel()
	r := Report{Node: run.Node{Name: "n"}, Passes: []Pass{{Phase: run.Write, Outcome: Failed, Message: "<script>|x", Log: "</pre>```"}}}
	var html, md bytes.Buffer
	require.NoError(t, Lot{Nodes: []Report{r}}.HTML(&html))
	require.NotContains(t, html.String(), "<script>")
	require.NotContains(t, html.String(), "</pre>```")
	require.NoError(t, Lot{Nodes: []Report{r}}.Markdown(&md))
	require.Contains(t, md.String(), `\|x`)
}

func TestDeviations(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	node := func(name string, took time.Duration) Report {
		return Report{Node: run.Node{Name: name}, Read: at.Add(took), Passes: []Pass{
			{Phase: run.Write, Outcome: Proved, Asked: at, Ended: at.Add(took)},
		}}
	}
	l := Lot{Nodes: []Report{node("a", 10*time.Second), node("b", 11*time.Second), node("c", 40*time.Second)}}
	require.Equal(t, []Deviation{{"c", run.Write, 40 * time.Second, 11 * time.Second}}, l.Deviations())
	require.Equal(t, []PhaseTimes{{run.Write, 11 * time.Second, 40 * time.Second, "c"}}, l.Phases())

	failed, canceled := node("d", 90*time.Second), node("e", 95*time.Second)
	failed.Passes[0].Outcome, canceled.Passes[0].Outcome = Failed, Canceled
	l.Nodes = append(l.Nodes, failed, canceled)
	require.Equal(t, []Deviation{{"d", run.Write, 90 * time.Second, 11 * time.Second}, {"c", run.Write, 40 * time.Second, 11 * time.Second}}, l.Deviations())
}

// TestLabels: a label stands where there is room for it, and never outside of
// the picture.
func TestLabels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		x, width, at int
		place        place
	}{
		"at the start": {0, 100, 106, behind},
		"at the end":   {700, 260, 694, before},
		"all of it":    {30, 930, 36, within},
	} {
		where, at := label(bar{X: c.x, Width: c.width})
		require.Equal(t, c.place, where, name)
		require.Equal(t, c.at, at, name)
	}
}

func TestWhatIsNoHistory(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "{", `{"events": 3}`, "<html>"} {
		_, err := Parse([]byte(data))
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), data)
	}
	h, err := Parse([]byte(`{"events":[]}`))
	require.NoError(t, err)
	_, err = Read("x", h, time.Time{})
	require.ErrorContains(t, err, "does not begin")
}
