package live

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

const (
	gap = "  "
	// reasonLines is how many lines of its own a stuck node's reason may always
	// take when its row has no room for it.
	reasonLines = 3
	leastWork   = 20 // cells of the last column
)

// column is a column of the table: cells of a fixed width, the last one takes
// the rest. Optional ones need a wide terminal.
type column struct {
	title string
	right bool
	from  int // width of the terminal from which on it is shown
	cell  func(n track.Node, now time.Time) string
}

func columns() []column {
	return []column{
		{title: "NODE", cell: func(n track.Node, _ time.Time) string { return n.Node.Name }},
		{title: "SERVER", from: 140, cell: func(n track.Node, _ time.Time) string { return show.Clean(n.Node.ServerName) }},
		{title: "STATE", cell: func(n track.Node, _ time.Time) string { return show.State(n) }},
		{title: "PHASE", cell: func(n track.Node, _ time.Time) string { return string(n.Phase) }},
		{title: "TRY", right: true, cell: attempt},
		{title: "TIME", right: true, cell: show.Took},
		{title: "IN PHASE", right: true, from: 110, cell: inPhase},
	}
}

// attempt is the how-manyth try of the phase at work is on; the first one is
// nothing to tell.
func attempt(n track.Node, _ time.Time) string {
	if n.State != run.Running || tries(n) < 2 {
		return ""
	}
	return fmt.Sprint(tries(n))
}

// tries counts the attempts at a phase or its jobs on the machine, whichever
// are more: a later attempt goes on with the jobs of the one before.
func tries(n track.Node) int {
	if n.Progress == nil {
		return int(n.Attempt)
	}
	return max(int(n.Attempt), n.Progress.Try)
}

// inPhase is how long a node has been in its phase and state.
func inPhase(n track.Node, now time.Time) string {
	if n.Status == nil || n.State.Final() || n.Status.Since.IsZero() {
		return ""
	}
	return show.Duration(now.Sub(n.Status.Since))
}

// table lays nodes out in lines of at most width cells: the head, and for
// each node its row, with the reason of a stuck one below when it is long.
type table struct {
	columns []column
	widths  []int
	width   int
	reasons int // lines that a reason may take
}

// newTable measures all nodes of a lot, so that columns stay where they are
// while rows change places.
func newTable(nodes []track.Node, now time.Time, width int) table {
	t := table{width: width, reasons: reasonLines}
	for _, c := range columns() {
		if c.from > width {
			continue
		}
		w := ansi.StringWidth(c.title)
		for _, n := range nodes {
			w = max(w, ansi.StringWidth(c.cell(n, now)))
		}
		switch c.title {
		case "STATE":
			w = max(w, len(run.Running))
		case "PHASE":
			w = max(w, len(run.RebootRescue))
		case "TIME":
			w = max(w, len("00m00s"))
		}
		t.columns, t.widths = append(t.columns, c), append(t.widths, w)
	}
	// A long name gives way to the work.
	if over := leastWork - t.rest(); over > 0 {
		t.widths[0] = max(4, t.widths[0]-over)
	}
	return t
}

// rest is the width of the last column.
func (t table) rest() int {
	used := 0
	for _, w := range t.widths {
		used += w + len(gap)
	}
	return max(0, t.width-used)
}

func (t table) head() string {
	var b strings.Builder
	for i, c := range t.columns {
		b.WriteString(pad(c.title, t.widths[i], c.right) + gap)
	}
	return muted().Render(ansi.Truncate(b.String()+"PROGRESS", t.width, ""))
}

// spread lets reasons be as long as they are while all nodes fit the lines there
// are.
func (t *table) spread(nodes []track.Node, now time.Time, lines int) {
	for more := reasonLines + 1; more <= lines; more++ {
		wide, used := *t, 0
		wide.reasons = more
		for _, n := range nodes {
			used += len(wide.rows(n, now))
		}
		if used > lines {
			return
		}
		*t = wide
	}
}

// last is the first of the nodes at the end that fill the lines there are.
func (t table) last(nodes []track.Node, now time.Time, lines int) int {
	i := len(nodes)
	for i > 0 {
		if lines -= len(t.rows(nodes[i-1], now)); lines < 0 {
			break
		}
		i--
	}
	return max(0, min(i, len(nodes)-1))
}

// rows gives a node's lines.
func (t table) rows(n track.Node, now time.Time) []string {
	var b strings.Builder
	for i, c := range t.columns {
		cell := pad(c.cell(n, now), t.widths[i], c.right)
		switch c.title {
		case "STATE":
			cell = stateColour(n).Render(cell)
		case "TRY":
			cell = warning().Render(cell)
		}
		b.WriteString(cell + gap)
	}
	last, below := work(n, t.rest()), []string(nil)
	if whole := show.Doing(n); n.Settled() && (n.State != run.Ready || n.Newer != nil) && ansi.StringWidth(whole) > t.rest() {
		last, below = "", t.reason(whole)
	}
	line := ansi.Truncate(strings.TrimRight(b.String()+last, " "), t.width, "…")
	return append([]string{line}, below...)
}

// reason breaks a long reason into lines below its node.
func (t table) reason(text string) []string {
	const indent = "  "
	lines := show.Break(text, t.width-len(indent))
	if len(lines) > t.reasons {
		lines = append(lines[:t.reasons-1], strings.Join(lines[t.reasons-1:], " "))
	}
	for i, line := range lines {
		lines[i] = indent + ansi.Truncate(line, max(1, t.width-len(indent)), "…")
	}
	return lines
}

func pad(s string, width int, right bool) string {
	s = ansi.Truncate(s, width, "…")
	fill := strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
	if right {
		return fill + s
	}
	return s + fill
}

// stateColour is that of a node's state, unless it holds no longer.
func stateColour(n track.Node) lipgloss.Style {
	if n.Newer != nil {
		return warning()
	}
	return colour(n.State)
}

// The colours are the terminal's own sixteen, which its theme keeps readable.
func colour(s run.State) lipgloss.Style {
	style := lipgloss.NewStyle()
	switch s {
	case run.Stuck:
		return style.Foreground(lipgloss.Red).Bold(true)
	case run.Ready:
		return style.Foreground(lipgloss.Green)
	case run.Running:
		return style.Foreground(lipgloss.Cyan)
	case run.Aborted, run.Refused:
		return style.Foreground(lipgloss.Yellow)
	default:
		return muted()
	}
}

func muted() lipgloss.Style   { return lipgloss.NewStyle().Faint(true) }
func warning() lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Yellow) }
func strong() lipgloss.Style  { return lipgloss.NewStyle().Bold(true) }
