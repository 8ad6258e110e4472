package live

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

var update = flag.Bool("update", false, "write the golden files anew")

func start() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

func node(i int, state run.State, phase run.Phase) track.Node {
	name := fmt.Sprintf("rack-1-w-%03d", i)
	n := track.Node{
		Node:  run.Node{Lot: "rack-1", Name: name, ServerName: fmt.Sprintf("metal-%03d", i)},
		State: state, Phase: phase, Attempt: 1,
	}
	if state != run.Queued && state != run.Refused {
		n.Status = &run.Status{State: state, Started: start(), Since: start().Add(time.Minute)}
	}
	return n
}

// rack is a lot with a node in every state, and of those at work one of each
// kind of progress.
func rack() track.Lot {
	write := node(2, run.Running, run.Write)
	write.Progress = &run.Progress{Step: "write the image", Done: 2315717136, Total: 4453302272, Rate: 212.4e6}
	stage := node(3, run.Running, run.Stage)
	stage.Progress = &run.Progress{Step: "download the image", Done: 61e6, Total: 104.9e6, Rate: 1.2e6, Try: 2}
	dial := node(4, run.Running, run.WaitSSH)
	dial.Attempt, dial.Failure, dial.Progress = 3, "the host\x1b[2J does not answer at 10.0.0.4:22", &run.Progress{Step: "dial"}
	ready := node(5, run.Ready, run.WaitReady)
	ready.Status.Ended = start().Add(187 * time.Second)
	ready.Status.Facts.Ready = &run.NodeReady{TalosVersion: "v1.13.8"}
	waits := node(6, run.Running, run.WaitReady)
	waits.Progress = &run.Progress{Step: "wait", Unmet: []string{"etcd", "kubelet"}}
	stuck := node(7, run.Stuck, run.Stage)
	stuck.Reason = "the digest is wrong: the download from https://factory.talos.dev/image/metal-amd64.raw.zst has SHA-256 dd202e5a, expected was 0000005a"
	refused := node(8, run.Refused, "")
	refused.Reason = "another run holds server metal-008"
	return track.Lot{Name: "rack-1", Started: start(), Open: true, Lab: true, Nodes: []track.Node{
		node(1, run.Queued, ""), write, stage, dial, ready, waits, stuck, refused,
	}}
}

// paused is the rack with a pause whose reason is longer than a line of 80.
func paused() track.Lot {
	l := rack()
	l.Paused = &run.Pause{Reason: "the provider works on the rack's\x1b[2J switch until noon, see its status page", At: start()}
	l.Held = l.Paused.Reason
	return l
}

// waiting is the rack with a canary at work, and a Ready node that another lot
// has installed anew.
func waiting() track.Lot {
	l := rack()
	l.Waits = []track.Wait{{Cause: run.WaitsForCanary, Why: "the canary rack-1-w-002 is not Ready yet", Nodes: []string{"rack-1-w-001"}}}
	l.Nodes[0].Waits = l.Waits[0].Why
	l.Nodes[4].Newer = &track.NewerRun{Lot: "rack-2", Node: "rack-2-w-005", State: run.Ready, Phase: run.WaitReady, Started: start()}
	return l
}

// hall is a lot of a thousand nodes.
func hall() track.Lot {
	l := track.Lot{Name: "hall", Started: start(), Open: true}
	phases := run.Phases()
	for i := range 1000 {
		n := node(i, run.Running, phases[i%len(phases)])
		switch {
		case i%250 == 7:
			n.State, n.Reason = run.Stuck, "two disks are alike"
		case i >= 900:
			n = node(i, run.Queued, "")
		case i%3 == 0:
			n.State = run.Ready
		}
		l.Nodes = append(l.Nodes, n)
	}
	return l
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		lot           track.Lot
		width, height int
		first         int
		silent        bool
	}{
		{"rack-80", rack(), 80, 24, 0, false},
		{"rack-200", rack(), 200, 24, 0, false},
		{"rack-silent-80", rack(), 80, 24, 0, true},
		{"rack-silent-200", rack(), 200, 24, 0, true},
		{"rack-paused-80", paused(), 80, 24, 0, false},
		{"rack-paused-200", paused(), 200, 24, 0, false},
		{"rack-waiting-80", waiting(), 80, 26, 0, false},
		{"rack-waiting-200", waiting(), 200, 24, 0, false},
		{"hall-80", hall(), 80, 24, 0, false},
		{"hall-200", hall(), 200, 30, 0, false},
		{"hall-scrolled", hall(), 80, 24, 500, false},
		{"hall-end", hall(), 80, 24, 2000, false},
		{"tiny", rack(), 30, 8, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := view{lot: c.lot, now: start().Add(3 * time.Minute)}
			if c.silent {
				v.silence = silence()
				v.stopped = v.silence.Since
			}
			text, p := frame(v, c.width, c.height, c.first)
			require.Positive(t, p.fit)
			plain := ansi.Strip(text)
			lines := strings.Split(plain, "\n")
			require.LessOrEqual(t, len(lines), c.height)
			for i, line := range lines {
				require.LessOrEqual(t, ansi.StringWidth(line), c.width, line)
				lines[i] = strings.TrimRight(line, " ")
			}
			require.NotContains(t, plain, "\x1b", "what others said cannot command the terminal")
			golden(t, c.name, strings.Join(lines, "\n")+"\n")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// TestReasonsAreWholeWhileThereIsRoom: why a node is stuck is not cut for lines
// that stay empty.
func TestReasonsAreWholeWhileThereIsRoom(t *testing.T) {
	t.Parallel()
	l := rack()
	why := strings.TrimSpace(strings.Repeat("a long cause ", 30)) + " and its end"
	l.Nodes[6].Reason = why
	for height, whole := range map[int]bool{24: true, 16: false} {
		text, p := frame(view{lot: l, now: start().Add(time.Hour)}, 80, height, 0)
		var words []string
		for line := range strings.Lines(ansi.Strip(text)) {
			words = append(words, strings.Fields(line)...)
		}
		require.Equal(t, whole, strings.Contains(strings.Join(words, " "), why), height)
		require.Equal(t, whole, p.fit == len(l.Nodes), height)
	}
}

func TestColoursTellTheState(t *testing.T) {
	t.Parallel()
	text, _ := frame(view{lot: rack(), now: start()}, 80, 24, 0)
	require.Contains(t, text, "\x1b[1;31mstuck")
	require.Contains(t, text, "\x1b[36mrunning")
}

func TestNoSizeIsTooSmall(t *testing.T) {
	t.Parallel()
	for width := 1; width < 60; width++ {
		for height := 1; height < 12; height++ {
			text, p := frame(view{rack(), start(), silence(), start()}, width, height, 0)
			require.Positive(t, p.fit)
			lines := strings.Split(text, "\n")
			require.LessOrEqual(t, len(lines), height)
			for _, line := range lines {
				require.LessOrEqual(t, ansi.StringWidth(line), width)
			}
		}
	}
	text, _ := frame(view{lot: track.Lot{Name: "empty"}, now: start()}, 80, 24, 0)
	require.Contains(t, text, "Lot empty")
}

func TestLeft(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]run.Progress{
		"":            {Done: 5, Total: 10},
		"5s left":     {Done: 5, Total: 10, Rate: 1},
		"1m40s left":  {Total: 100, Rate: 1},
		"27h46m left": {Total: 100000, Rate: 1},
	} {
		require.Equal(t, want, left(&p, " left"))
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	left := false
	l := hall()
	m := &model{lot: &l, width: 80, height: 24, now: start(), leave: func() { left = true }}
	m.View()
	full := m.fit
	m.key("end")
	m.View()
	last := m.first
	require.Equal(t, 1000, last+m.fit, "the last node is shown")
	require.GreaterOrEqual(t, m.fit, full, "on a full page")
	for _, c := range []struct {
		key   string
		first int
	}{{"home", 0}, {"down", 1}, {"up", 0}, {"up", 0}, {"end", last}, {"down", last}, {"pgdown", last}, {"up", last - 1}, {"home", 0}, {"pgdown", full}} {
		m.key(c.key)
		m.View()
		require.Equal(t, c.first, m.first, c.key)
	}
	require.False(t, left)
	require.NotNil(t, m.key("ctrl+c"))
	require.True(t, left)
}

// TestNoPageIsLeftEmpty: a terminal that grows and a lot that shrinks leave no
// room below the last node while nodes are scrolled by.
func TestNoPageIsLeftEmpty(t *testing.T) {
	t.Parallel()
	l := hall()
	m := &model{lot: &l, width: 80, height: 24, now: start()}
	m.View()
	m.key("end")
	m.View()
	first := m.first
	m.height = 60
	m.View()
	require.Equal(t, first-36, m.first)
	require.Equal(t, 1000, m.first+m.fit)

	few := rack()
	m.lot = &few
	m.View()
	require.Zero(t, m.first)
	require.Equal(t, len(few.Nodes), m.fit)
}

func silence() *show.Silence {
	return &show.Silence{
		Lot: "rack-1", Address: "temporal.example:7233", Since: start().Add(168 * time.Second), Seen: true,
		Err: fmt.Errorf("lot rack-1 cannot be looked at: %w", serviceerror.NewUnavailable("connection\x1b[2J refused")),
	}
}

// TestSilence: what is shown stays while Temporal is away, says how old it is,
// second by second, and goes on by itself.
func TestSilence(t *testing.T) {
	t.Parallel()
	m := &model{width: 120, height: 24}
	m.Update(looked{rack(), start()})
	s := silence()
	m.Update(unheard{*s, s.Since.Add(5 * time.Second)})
	require.Contains(t, ansi.Strip(m.View().Content), "Temporal at temporal.example:7233 has not answered for 5 s; shown is the state of 12:02:48 UTC\n")
	m.Update(tick(s.Since.Add(12 * time.Second)))
	text := ansi.Strip(m.View().Content)
	require.Contains(t, text, "has not answered for 12 s")
	require.Contains(t, text, "connection [2J refused")
	require.Contains(t, text, "rack-1-w-007")
	m.Update(looked{rack(), start()})
	require.NotContains(t, ansi.Strip(m.View().Content), "Temporal")

	s.Seen = false
	m = &model{width: 120, height: 24}
	m.Update(unheard{*s, s.Since.Add(5 * time.Second)})
	require.Contains(t, ansi.Strip(m.View().Content), "has not answered for 5 s; nothing is known of the lot yet")
}

// TestClocksDoNotGoBack when an outage is noticed: they stand still where they
// were, until Temporal answers again.
func TestClocksDoNotGoBack(t *testing.T) {
	t.Parallel()
	l := rack()
	l.Started = start()
	m := &model{width: 120, height: 24}
	clock := func() string {
		head, _, _ := strings.Cut(ansi.Strip(m.View().Content), "\n")
		return strings.TrimSpace(head[strings.LastIndex(head, " "):])
	}
	seen := start().Add(10 * time.Minute)
	s := show.Silence{Lot: "rack-1", Address: "here:1", Since: seen, Seen: true, Err: fmt.Errorf("lot rack-1 cannot be looked at: %w", context.DeadlineExceeded)}
	for i, step := range []struct {
		msg  tea.Msg
		want time.Duration
	}{
		{looked{l, seen}, 10 * time.Minute},
		{tick(seen.Add(9 * time.Second)), 10*time.Minute + 9*time.Second},
		{unheard{s, seen.Add(10 * time.Second)}, 10*time.Minute + 9*time.Second},
		{tick(seen.Add(11 * time.Second)), 10*time.Minute + 9*time.Second},
		{unheard{s, seen.Add(20 * time.Second)}, 10*time.Minute + 9*time.Second},
		{looked{l, seen.Add(30 * time.Second)}, 10*time.Minute + 30*time.Second},
	} {
		m.Update(step.msg)
		require.Equal(t, show.Duration(step.want), clock(), "step %d", i)
		require.NotContains(t, m.View().Content, "deadline", "step %d", i)
	}
}
