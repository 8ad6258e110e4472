package live

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// work says in one line of at most width cells what a node does, or why it
// does nothing: the longest of several forms that fits.
func work(n track.Node, width int) string {
	p := n.Progress
	switch {
	case n.Aborting:
		return ansi.Truncate(show.Doing(n), width, "…")
	case n.State == run.Running && n.Attempt > 1 && n.Failure != "":
		text := show.Clean(n.Failure)
		if now := cmp.Or(n.Waits, show.Progress(p)); now != "" { // first, since the end is cut off
			text = show.Clean(now) + "; before: " + text
		}
		return ansi.Truncate(text, width, "…")
	case n.State != run.Running, p == nil, p.Total <= 0:
		return ansi.Truncate(show.Doing(n), width, "…")
	}
	percent := fmt.Sprintf("%3d%%", share(p))
	of := percent + " of " + size.Text(p.Total)
	forms := [][]string{
		{bar(p, 20), of, rate(p), left(p, " left"), show.Clean(p.Step)},
		{bar(p, 10), of, rate(p), left(p, " left"), show.Clean(p.Step)},
		{bar(p, 10), of, rate(p), left(p, " left")},
		{bar(p, 6), percent, rate(p), left(p, "")},
		{percent, rate(p), left(p, "")},
		{percent, rate(p)},
	}
	for _, form := range forms {
		if text := join(form); ansi.StringWidth(text) <= width {
			return text
		}
	}
	return ansi.Truncate(percent, width, "")
}

// join puts the parts that say something beside each other.
func join(parts []string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, " ")
}

// share is how much of the work is done, in percent.
func share(p *run.Progress) int64 { return max(0, min(100, p.Done*100/p.Total)) }

// bar shows the share in a number of cells.
func bar(p *run.Progress, cells int) string {
	full := int(share(p)) * cells / 100
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full)
}

func rate(p *run.Progress) string {
	if p.Rate <= 0 {
		return ""
	}
	return fmt.Sprintf("%11s", size.Rate(p.Rate))
}

// left is how long the rest takes at the rate of now.
func left(p *run.Progress, word string) string {
	if p.Rate <= 0 || p.Done >= p.Total {
		return ""
	}
	d := time.Duration(float64(p.Total-p.Done) / p.Rate * float64(time.Second)).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds%s", int(d.Seconds()), word)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds%s", int(d.Minutes()), int(d.Seconds())%60, word)
	default:
		return fmt.Sprintf("%dh%02dm%s", int(d.Hours()), int(d.Minutes())%60, word)
	}
}
