package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// view is a lot as it is seen at a moment.
type view struct {
	lot     track.Lot
	now     time.Time
	silence *show.Silence // nil: Temporal answers
	stopped time.Time     // where the clocks stand while it does not
}

// page is the part of the nodes that a frame shows: from the first-th on so
// many as fit. With the last-th on top nothing is left below.
type page struct{ first, fit, last int }

// frame draws a lot on a screen of width × height cells, with the nodes from
// the first-th on in the order of interest, or from where the rest fits.
func frame(v view, width, height, first int) (string, page) {
	nodes, now := order(v.lot.Nodes), v.now
	if v.silence != nil {
		now = v.stopped // nobody knows for how long what is shown has gone on
	}
	t := newTable(nodes, now, width)
	head := summary(v.lot, now, width)
	lines := append(head[:1:1], old(v.silence, v.now, width)...)
	lines = append(append(lines, head[1:]...), "", t.head())
	room := max(1, height-len(lines)-1)
	if len(nodes) <= room {
		t.spread(nodes, now, room)
	}
	p := page{last: t.last(nodes, now, room)}
	p.first = max(0, min(first, p.last))
	for _, n := range nodes[p.first:] {
		rows := t.rows(n, now)
		if len(rows) > room && p.fit > 0 {
			break
		}
		rows = rows[:min(room, len(rows))]
		lines, room, p.fit = append(lines, rows...), room-len(rows), p.fit+1
	}
	lines = append(lines, strings.Split(strings.Repeat("\n", room), "\n")[1:]...)
	lines = append(lines, footer(p, v.lot, width))
	return strings.Join(lines[:min(len(lines), height)], "\n"), p
}

// old says that Temporal does not answer, how old that makes what is shown, and
// what failed; nothing when it answers.
func old(s *show.Silence, now time.Time, width int) []string {
	if s == nil {
		return nil
	}
	lines := warn(s.Text(now), width)
	if more := s.More(); more != "" {
		lines = append(lines, warning().Render(ansi.Truncate(more, width, "…")))
	}
	return lines
}

// warn is a warning on as many lines as it takes.
func warn(text string, width int) []string { return said(show.Line{Text: text, Person: true}, width) }

// said is a sentence on as many lines as it takes; one that a person has to act
// on stands out.
func said(l show.Line, width int) []string {
	style := muted()
	if l.Person {
		style = warning()
	}
	lines := show.Break(l.Text, width)
	for i, line := range lines {
		lines[i] = style.Render(ansi.Truncate(line, width, "…"))
	}
	return lines
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
		head += gap + warning().Render("its workflow fails, see `starter status "+l.Name+"`")
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
	if t.newer > 0 {
		states = append(states, warning().Render(fmt.Sprintf("%d * whose server another lot has, or had, since", t.newer)))
	}
	lines := append([]string{ansi.Truncate(head, width, "…"), lotBar(t, len(l.Nodes), min(width, widestBar))}, flow(states, width)...)
	for _, line := range show.Queue(l) {
		lines = append(lines, said(line, width)...)
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

// footer tells what can be done; about nodes that wait for a person where there
// is room for it.
func footer(p page, l track.Lot, width int) string {
	parts := []string{"q leave, the runs go on"}
	if nodes := len(l.Nodes); p.fit < nodes {
		parts = []string{fmt.Sprintf("nodes %d to %d of %d", p.first+1, p.first+p.fit, nodes), "↑ ↓ PgUp PgDn scroll", parts[0]}
	}
	text := strings.Join(parts, gap)
	if slices.ContainsFunc(l.Nodes, func(n track.Node) bool { return n.State == run.Stuck }) {
		if more := text + gap + fmt.Sprintf("`starter status %s` says what to do", l.Name); ansi.StringWidth(more) <= width {
			text = more
		}
	}
	return muted().Render(ansi.Truncate(text, width, "…"))
}
