// Package show turns what is known of a lot into text: a line a node, a
// table at the end, events as JSON. It is pure: time and width are given.
package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Simulated is put wherever results of the lab are shown.
const Simulated = "SIMULATED: these machines are the lab's, none is real."

// Duration shows a time span as people read it: 4.2s, 3m07s, 1h02m.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0.0s"
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Progress says what a phase does right now.
func Progress(p *run.Progress) string {
	if p == nil {
		return ""
	}
	parts := []string{p.Step}
	if p.Try > 1 {
		parts = append(parts, fmt.Sprintf("job %d of the phase", p.Try))
	}
	switch {
	case p.Total > 0:
		parts = append(parts, fmt.Sprintf("%d%% of %s", min(100, p.Done*100/p.Total), size.Text(p.Total)))
	case p.Done > 0:
		parts = append(parts, size.Text(p.Done))
	}
	if p.Rate > 0 {
		parts = append(parts, size.Rate(p.Rate))
	}
	if len(p.Unmet) > 0 {
		parts = append(parts, "waits for "+strings.Join(p.Unmet, "; "))
	}
	return Clean(strings.Join(parts, ", "))
}

// Doing says in a few words what a node does, or why it does nothing.
func Doing(n track.Node) string {
	switch {
	case n.Newer != nil:
		return Newer(*n.Newer)
	case n.State == run.Ready:
		return readyText(n)
	case n.Aborting:
		return "aborting: the job on the machine is stopped first, if there is one"
	case n.State == run.Running && n.Attempt > 1 && n.Failure != "":
		text := fmt.Sprintf("try %d", n.Attempt)
		if now := cmp.Or(n.Waits, Progress(n.Progress)); now != "" {
			text += ", " + now
		}
		return Clean(text + "; before: " + n.Failure)
	case n.State == run.Running:
		return cmp.Or(n.Waits, Progress(n.Progress))
	case n.State == run.Queued:
		return Clean(n.Waits)
	default:
		return Clean(n.Reason)
	}
}

func readyText(n track.Node) string {
	if n.Status == nil || n.Status.Facts.Ready == nil {
		return ""
	}
	text := Clean("Talos " + n.Status.Facts.Ready.TalosVersion)
	if n.Phase == run.Preflight { // it went no further
		return "left alone, was Ready with the lot's config: " + text
	}
	return text
}

// Took is how long a node's run has taken so far, or took.
func Took(n track.Node, now time.Time) string {
	if n.Status == nil || n.Status.Started.IsZero() {
		return ""
	}
	if !n.Status.Ended.IsZero() {
		now = n.Status.Ended
	}
	return Duration(now.Sub(n.Status.Started))
}

// Clean keeps text of others on one line, and shows it as Printable does.
func Clean(s string) string { return strings.Join(strings.Fields(Printable(s)), " ") }

// Printable keeps text of others free of what a terminal does not show:
// commands, and characters that turn the direction of what follows. Lines
// stay lines.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return ' '
	}, s)
}

// cut cuts a line to a width in letters; 0 is without end.
func cut(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, width-1)]) + "…"
}
