package show

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Table lays rows out in columns; the first row is the head.
func Table(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// Results is the table at the end: each node's state and the time that it
// spent in each phase, all passes together. When that is wider than width (0:
// there is no limit) the phases run down; for more nodes than then fit side
// by side, the phase that a node is in and the slowest one stand for all.
func Results(l track.Lot, now time.Time, width int) string {
	across := resultRows(l, now)
	if fits(across, width) {
		return Table(across)
	}
	if down := transpose(across); fits(down, width) {
		return Table(down)
	}
	return Table(inBrief(l, now, width))
}

// inBrief has the phase that each node is in, or came to, and what else fits.
func inBrief(l track.Lot, now time.Time, width int) [][]string {
	rows := [][]string{{"NODE", "STATE", "TOTAL", "PHASE", "SERVER", "SLOWEST PHASE"}}
	for _, n := range l.Nodes {
		rows = append(rows, []string{n.Node.Name, State(n), Took(n, now), currently(n, now), Clean(n.Node.ServerName), slowest(n.Status, now)})
	}
	for !fits(rows, width) && len(rows[0]) > 4 {
		for i, row := range rows {
			rows[i] = row[:len(row)-1]
		}
	}
	return rows
}

// currently names the phase that a node is in, or came to short of Ready, and
// the time that its run has spent in it.
func currently(n track.Node, now time.Time) string {
	if n.State == run.Ready || n.Phase == "" {
		return ""
	}
	return strings.TrimSpace(string(n.Phase) + " " + phaseText(n.Status, n.Phase, now))
}

// resultRows has a row a node and a column a phase.
func resultRows(l track.Lot, now time.Time) [][]string {
	head := []string{"NODE", "SERVER", "STATE", "TOTAL"}
	for _, p := range run.Phases() {
		head = append(head, strings.ToUpper(string(p)))
	}
	rows := [][]string{head}
	for _, n := range l.Nodes {
		row := []string{n.Node.Name, Clean(n.Node.ServerName), State(n), Took(n, now)}
		for _, p := range run.Phases() {
			row = append(row, phaseText(n.Status, p, now))
		}
		rows = append(rows, row)
	}
	return rows
}

// transpose makes columns of rows, which all have the same length.
func transpose(rows [][]string) [][]string {
	turned := make([][]string, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			turned[i] = append(turned[i], cell)
		}
	}
	return turned
}

// fits reports whether no line of a table is wider than width; 0 is no limit.
func fits(rows [][]string, width int) bool {
	return width <= 0 || narrow(Table(rows), width)
}

// phaseTime is the time that a run has spent in a phase, and how often it
// went through it.
func phaseTime(s *run.Status, p run.Phase, now time.Time) (total time.Duration, passes int) {
	if s == nil {
		return 0, 0
	}
	for _, r := range s.Timeline {
		if r.Phase != p {
			continue
		}
		passes++
		end := r.Ended
		if end.IsZero() {
			end = now
		}
		total += end.Sub(r.Started)
	}
	return total, passes
}

func phaseText(s *run.Status, p run.Phase, now time.Time) string {
	total, passes := phaseTime(s, p, now)
	if passes == 0 {
		return ""
	}
	text := Duration(total)
	if last := s.Timeline[len(s.Timeline)-1]; last.Phase == p && last.Ended.IsZero() {
		text += "…" // it goes on
	}
	if passes > 1 {
		text += fmt.Sprintf(" (%d×)", passes)
	}
	return text
}

// slowest names the phase in which a run has spent the most time.
func slowest(s *run.Status, now time.Time) string {
	var longest time.Duration
	text := ""
	for _, p := range run.Phases() {
		if total, passes := phaseTime(s, p, now); passes > 0 && total >= longest {
			longest, text = total, string(p)+" "+phaseText(s, p, now)
		}
	}
	return text
}

// Counts is the lot in one line: how many nodes are in which state.
func Counts(l track.Lot) string {
	count := map[run.State]int{}
	for _, n := range l.Nodes {
		count[n.State]++
	}
	return fmt.Sprintf("%d of %d nodes Ready (%s)", count[run.Ready], len(l.Nodes), byState(count))
}

// byState tells how many are in which state.
func byState(count map[run.State]int) string {
	var parts []string
	for _, s := range []run.State{run.Ready, run.Running, run.Queued, run.Stuck, run.Aborted, run.Refused} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	return strings.Join(parts, ", ")
}

// Stops explains every node that stopped short of Ready, and what to do. What it
// would take is not said of one whose server another lot has since.
func Stops(l track.Lot) string {
	var b strings.Builder
	for _, n := range l.Nodes {
		if !n.Settled() || n.State == run.Ready {
			continue
		}
		fmt.Fprintf(&b, "\n%s is %s\n", n.Node.Name, run.Told(n.State, n.Phase, Clean(n.Reason)))
		if n.Newer != nil {
			fmt.Fprintf(&b, "  since then: %s\n", Newer(*n.Newer))
			continue
		}
		if what := remedy(n); what != "" {
			fmt.Fprintf(&b, "  what to do: %s\n", Clean(what))
		}
		if n.Status != nil && n.Status.Problem != nil && n.Status.Problem.Erased != "" {
			fmt.Fprintf(&b, "  erased: %s\n", Clean(n.Status.Problem.Erased))
		}
		if n.State == run.Stuck {
			if !namesRetry(n) {
				fmt.Fprintf(&b, "  then: `starter retry %s %s`, with `--batch LOT.YAML` when you have corrected the lot file\n", l.Name, n.Node.Name)
			}
			fmt.Fprintf(&b, "  or: `starter abort %s %s`\n", l.Name, n.Node.Name)
		}
	}
	return b.String()
}

// remedy is what to do about a node that has stopped.
func remedy(n track.Node) string {
	if n.Remedy == "" && n.Status != nil && n.Status.Problem != nil {
		return n.Status.Problem.Remedy
	}
	return n.Remedy
}

// namesRetry reports whether what to do ends in a retry of its own: a plain
// one below it would contradict it.
func namesRetry(n track.Node) bool {
	return n.Status != nil && n.Status.Problem != nil && n.Status.Problem.NamesRetry()
}
