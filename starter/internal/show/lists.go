package show

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Lots is the list of lots as a table. Width is the terminal's, 0: none.
func Lots(lots []track.Summary, now time.Time, wide bool, width int) string {
	head := []string{"LOT", "STATE", "READY", "RUNNING", "QUEUED", "STUCK", "OTHER", "STARTED", "TOOK"}
	if wide {
		head = append(head, "WORKFLOW", "RUN")
	}
	rows, whys := [][]string{append(head, "WHY")}, ""
	simulated := false
	for _, l := range lots {
		n := l.Counts
		end := now
		if !l.Ended.IsZero() {
			end = l.Ended
		}
		row := []string{
			l.Lot, state(l), fmt.Sprintf("%d/%d", n.Ready, l.Nodes), number(n.Running), number(n.Queued), number(n.Stuck),
			number(n.Aborted + n.Refused), l.Started.UTC().Format(time.DateTime), Duration(end.Sub(l.Started)),
		}
		if wide {
			row = append(row, l.WorkflowID, l.RunID)
		}
		why := reasons(l)
		for _, reason := range why {
			whys += fmt.Sprintf("\nlot %s: %s\n", l.Lot, reason)
		}
		rows = append(rows, append(row, strings.Join(why, "; ")))
		simulated = simulated || l.Simulated
	}
	text := Table(rows)
	if wide || width <= 0 || narrow(text, width) {
		return text + lab(simulated)
	}
	for i := range rows { // reasons are not to be cut: they go below
		rows[i] = rows[i][:len(rows[i])-1]
	}
	return clipLines(Table(narrowed(rows, width)), width) + Wrap(whys, width) + lab(simulated)
}

// narrowed leaves out of a list of lots what says the least, until it fits: the
// columns of states that no lot has, then the year and the seconds of the start, then
// all of it.
func narrowed(rows [][]string, width int) [][]string {
	for _, title := range []string{"QUEUED", "RUNNING", "OTHER", "STUCK"} {
		if !fits(rows, width) && empty(rows, title) {
			rows = without(rows, title)
		}
	}
	if started := slices.Index(rows[0], "STARTED"); !fits(rows, width) {
		for _, row := range rows[1:] {
			if at, err := time.Parse(time.DateTime, row[started]); err == nil {
				row[started] = at.Format("01-02 15:04")
			}
		}
	}
	if !fits(rows, width) {
		rows = without(rows, "STARTED")
	}
	return rows
}

// empty reports whether a column has nothing but its title.
func empty(rows [][]string, title string) bool {
	i := slices.Index(rows[0], title)
	return i >= 0 && !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" })
}

// reasons are what a lot's counts do not tell: why the first stuck node is stuck,
// why others wait, and what of it holds no longer.
func reasons(l track.Summary) []string {
	var all []string
	if l.Stuck != nil {
		all = append(all, strings.TrimSuffix("first stuck is "+l.Stuck.Node+": "+Clean(l.Stuck.Reason), ": "))
	}
	if l.Paused != nil {
		all = append(all, Clean(l.Paused.String()))
	}
	for _, w := range l.Waits {
		if w.Cause != run.WaitsForResume {
			all = append(all, count.Do(len(w.Nodes), "node", "wait")+" because "+Clean(w.Why))
		}
	}
	if len(l.Newer) > 0 {
		all = append(all, laterRuns(l.Newer))
	}
	if l.Others > 0 {
		all = append(all, fmt.Sprintf("%s of it left alone, see `starter status %s`", count.Of(l.Others, "other node"), l.Lot))
	}
	return all
}

// state is how a lot stands, for people.
func state(l track.Summary) string {
	text := string(l.State)
	switch {
	case l.Paused != nil && l.State == run.Running:
		text = "paused"
	case l.Paused != nil:
		text += ", paused"
	}
	if len(l.Newer) > 0 {
		text += mark
	}
	return text
}

// narrow reports whether no line is wider than width.
func narrow(text string, width int) bool {
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
			return false
		}
	}
	return true
}

func confirmed(c *track.Confirmation) string {
	if c == nil {
		return ""
	}
	return c.At.UTC().Format(time.DateTime) + ", lot " + c.Lot
}

func labels(disks []run.Disk) string {
	var all []string
	for _, d := range disks {
		all = append(all, Clean(d.Label()))
	}
	return strings.Join(all, ", ")
}

// short is the beginning of a digest, which is enough to compare.
func short(digest string) string { return digest[:min(12, len(digest))] }

// number leaves a zero out, so that the others are seen.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func lab(simulated bool) string {
	if !simulated {
		return ""
	}
	return Simulated + "\n"
}

// clipLines cuts each line to a width; 0 is without end.
func clipLines(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(cut(strings.TrimSuffix(line, "\n"), width) + "\n")
	}
	return b.String()
}
