package show

import (
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/starter/internal/track"
)

// Waits says why the lot as a whole does not go on, and what to do, a line for
// each reason.
func Waits(l track.Lot) string {
	var b strings.Builder
	if held := Held(l); held != "" {
		b.WriteString("\n" + held)
		if l.Paused != nil {
			fmt.Fprintf(&b, "; it starts nodes again with `starter resume %s`", l.Name)
		} else {
			b.WriteString("; look after that")
		}
		b.WriteString(".\n")
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

// Held says why the lot starts no further node, in one line; empty: it does,
// or there is none to start.
func Held(l track.Lot) string {
	switch {
	case l.Paused != nil:
		return "The lot is " + Clean(l.Paused.String())
	case l.Held != "":
		return "The queued nodes do not start: " + Clean(l.Held)
	default:
		return ""
	}
}
