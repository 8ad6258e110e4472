package show

import (
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Waits says why the lot as a whole does not go on, and what to do, a line for
// each reason.
func Waits(l track.Lot) string {
	var b strings.Builder
	for _, line := range Queue(l) {
		fmt.Fprintf(&b, "\n%s.\n", line.Text)
	}
	if l.Slowed != "" {
		fmt.Fprintf(&b, "The provider is asked slowly: limited to %s.\n", l.Slowed)
	}
	if l.Failing != "" {
		fmt.Fprintf(&b, "The lot does not go on: %s.\n", Clean(l.Failing))
	} else if l.NoWorker {
		b.WriteString("No worker answers, so this may not be all; `starter up` or the worker must run.\n")
	}
	return b.String()
}

// Line is a sentence, without its full stop.
type Line struct {
	Text   string
	Person bool // it is of something that a person has to do
}

// Queue says why the lot starts no further node, or not yet, and what lets it; a
// line for each cause. None: every node has been started.
func Queue(l track.Lot) []Line {
	var lines []Line
	if l.Paused != nil {
		lines = append(lines, Line{paused(l), true})
	}
	for _, w := range l.Waits {
		if l.Paused == nil || w.Cause != run.WaitsForResume {
			lines = append(lines, Line{waiting(w), w.Remedy != ""})
		}
	}
	if len(lines) == 0 && l.Held != "" { // told by a worker of an earlier release
		lines = append(lines, Line{"The queued nodes do not start: " + Clean(l.Held) + "; look after that", true})
	}
	return lines
}

// theLotIs begins what is said of the lot where nothing has named it yet.
const theLotIs = "The lot is "

// paused says who has paused the lot, and what comes of that.
func paused(l track.Lot) string {
	queued := 0
	for _, n := range l.Nodes {
		if n.State == run.Queued {
			queued++
		}
	}
	text := theLotIs + Clean(l.Paused.String())
	if queued == 0 {
		return fmt.Sprintf("%s; no node waits for that, and `starter resume %s` ends it", text, l.Name)
	}
	return fmt.Sprintf("%s; %s until `starter resume %s` lets it start nodes again", text, count.Do(queued, "node", "wait"), l.Name)
}

// waiting says for how many nodes a cause holds, and what lets them start.
func waiting(w track.Wait) string {
	text := fmt.Sprintf("%s because %s", count.Do(len(w.Nodes), "node", "wait"), Clean(w.Why))
	switch {
	case w.Remedy != "":
		return text + "; " + Clean(w.Remedy)
	case w.Cause == run.WaitsForRoom:
		return text + "; nodes start by themselves as others end"
	default:
		return text + "; nodes start by themselves after that"
	}
}
