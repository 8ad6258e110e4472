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
// spent in each phase, all passes together.
func Results(l track.Lot, now time.Time) string {
	head := []string{"NODE", "SERVER", "STATE", "TOTAL"}
	for _, p := range run.Phases() {
		head = append(head, strings.ToUpper(string(p)))
	}
	rows := [][]string{head}
	for _, n := range l.Nodes {
		row := []string{n.Node.Name, clean(n.Node.ServerName), string(n.State), Took(n, now)}
		for _, p := range run.Phases() {
			row = append(row, phaseTime(n.Status, p, now))
		}
		rows = append(rows, row)
	}
	return Table(rows)
}

// phaseTime is the time that a run has spent in a phase.
func phaseTime(s *run.Status, p run.Phase, now time.Time) string {
	if s == nil {
		return ""
	}
	var total time.Duration
	passes := 0
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
	switch passes {
	case 0:
		return ""
	case 1:
		return Duration(total)
	default:
		return fmt.Sprintf("%s (%d×)", Duration(total), passes)
	}
}

// Counts is the lot in one line: how many nodes are in which state.
func Counts(l track.Lot) string {
	count := map[run.State]int{}
	for _, n := range l.Nodes {
		count[n.State]++
	}
	var parts []string
	for _, s := range []run.State{run.Ready, run.Running, run.Queued, run.Stuck, run.Aborted, run.Refused} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	return fmt.Sprintf("%d of %d nodes Ready (%s)", count[run.Ready], len(l.Nodes), strings.Join(parts, ", "))
}

// Stops explains every node that stopped short of Ready, and what to do.
func Stops(l track.Lot) string {
	var b strings.Builder
	for _, n := range l.Nodes {
		if !n.Settled() || n.State == run.Ready {
			continue
		}
		fmt.Fprintf(&b, "\n%s is %s", n.Node.Name, n.State)
		if n.Phase != "" {
			fmt.Fprintf(&b, " in %s", n.Phase)
		}
		fmt.Fprintf(&b, ": %s\n", clean(n.Reason))
		if n.Status != nil && n.Status.Problem != nil {
			p := n.Status.Problem
			if p.Remedy != "" {
				fmt.Fprintf(&b, "  what to do: %s\n", clean(p.Remedy))
			}
			if p.Erased != "" {
				fmt.Fprintf(&b, "  erased: %s\n", clean(p.Erased))
			}
		}
		if n.State == run.Stuck {
			fmt.Fprintf(&b, "  then: starter retry %s %s, or starter abort %s %s\n", l.Name, n.Node.Name, l.Name, n.Node.Name)
		}
	}
	return b.String()
}
