package live

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// frame draws a lot on a screen of width × height cells, with the nodes from
// the first-th on in the order of interest. It reports how many nodes fit.
func frame(l track.Lot, now time.Time, width, height, first int) (text string, fit int) {
	nodes := order(l.Nodes)
	t := newTable(nodes, now, width)
	lines := append(summary(l, now, width), "", t.head())
	room := max(1, height-len(lines)-1)
	for _, n := range nodes[min(first, len(nodes)):] {
		rows := t.rows(n, now)
		if len(rows) > room && fit > 0 {
			break
		}
		rows = rows[:min(room, len(rows))]
		lines, room, fit = append(lines, rows...), room-len(rows), fit+1
	}
	lines = append(lines, strings.Split(strings.Repeat("\n", room), "\n")[1:]...)
	lines = append(lines, footer(first, fit, len(nodes), width))
	return strings.Join(lines[:min(len(lines), height)], "\n"), fit
}

// summary tells of the whole lot: how many nodes are in which state, and in
// which phase those at work are.
func summary(l track.Lot, now time.Time, width int) []string {
	t := count(l.Nodes)
	head := strong().Render("Lot " + l.Name)
	if l.Lab {
		head += gap + warning().Render("SIMULATED")
	}
	if l.Failing != "" {
		head += gap + warning().Render("its workflow fails, see starter status "+l.Name)
	} else if l.NoWorker {
		head += gap + warning().Render("no worker answers")
	}
	if l.Slowed != "" {
		head += gap + warning().Render("provider calls slowed down")
	}
	head += gap + muted().Render(show.Duration(now.Sub(l.Started)))
	states := []string{colour(run.Ready).Render(fmt.Sprintf("%d of %d ready", t.states[run.Ready], len(l.Nodes)))}
	for _, s := range []run.State{run.Stuck, run.Running, run.Queued, run.Aborted, run.Refused} {
		if t.states[s] > 0 {
			states = append(states, colour(s).Render(fmt.Sprintf("%d %s", t.states[s], s)))
		}
	}
	lines := append([]string{ansi.Truncate(head, width, "…"), lotBar(t, len(l.Nodes), min(width, widestBar))}, flow(states, width)...)
	if held := show.Held(l); held != "" {
		for line := range strings.SplitSeq(ansi.Wordwrap(held, max(1, width), " "), "\n") {
			lines = append(lines, warning().Render(ansi.Truncate(strings.TrimSpace(line), width, "…")))
		}
	}
	var phases []string
	for _, p := range run.Phases() {
		if t.phases[p] > 0 {
			phases = append(phases, fmt.Sprintf("%s %d", p, t.phases[p]))
		}
	}
	return append(lines, flow(phases, width)...)
}

// widestBar is how many cells a bar takes on a wide terminal.
const widestBar = 100

// lotBar shows the share of each state, told apart without colours too.
func lotBar(t tally, nodes, width int) string {
	var b strings.Builder
	at, seen := 0, 0
	for _, part := range []struct {
		state run.State
		glyph string
	}{{run.Ready, "█"}, {run.Stuck, "!"}, {run.Aborted, "x"}, {run.Refused, "x"}, {run.Running, "▒"}, {run.Queued, "·"}} {
		if t.states[part.state] == 0 {
			continue
		}
		seen += t.states[part.state]
		// One node of many is seen as well.
		until := min(width, max(at+1, width*seen/max(1, nodes)))
		b.WriteString(colour(part.state).Render(strings.Repeat(part.glyph, max(0, until-at))))
		at = max(at, until)
	}
	return b.String()
}

// flow sets words one after another, in as many lines as they need.
func flow(words []string, width int) []string {
	var lines []string
	line := ""
	for _, w := range words {
		switch {
		case line == "":
			line = w
		case ansi.StringWidth(line)+3+ansi.StringWidth(w) <= width:
			line += " · " + w
		default:
			lines, line = append(lines, ansi.Truncate(line, width, "…")), w
		}
	}
	if line != "" {
		lines = append(lines, ansi.Truncate(line, width, "…"))
	}
	return lines
}

func footer(first, fit, nodes, width int) string {
	text := "q leave, the runs go on"
	if fit < nodes {
		text = fmt.Sprintf("nodes %d to %d of %d", first+1, first+fit, nodes) + gap + "↑ ↓ PgUp PgDn scroll" + gap + text
	}
	return muted().Render(ansi.Truncate(text, width, "…"))
}
