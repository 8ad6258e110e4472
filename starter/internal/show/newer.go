package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// mark stands behind what a newer run on the server may have made untrue.
const mark = " *"

// State is how a node's run stands, with a mark when a run of another lot has,
// or had, the server since.
func State(n track.Node) string {
	if n.Newer != nil {
		return string(n.State) + mark
	}
	return string(n.State)
}

// Newer says which other lot has the server of a node now, or had it since.
func Newer(r track.NewerRun) string {
	text := ""
	switch {
	case r.Reinstalled():
		text = fmt.Sprintf("lot %s has installed its server anew, in a run of %s", r.Lot, r.Started.UTC().Format(time.DateTime))
	case r.State.Final():
		text = fmt.Sprintf("lot %s had its server since, in a run of %s that was aborted in %s", r.Lot, r.Started.UTC().Format(time.DateTime), r.Phase)
	default:
		text = fmt.Sprintf("lot %s has its server now, %s in %s", r.Lot, r.State, r.Phase)
	}
	return Clean(fmt.Sprintf("%s; see `starter status %s %s`", text, r.Lot, r.Node))
}

// TakenOver says of each Ready node that another lot has its server, or had it
// since; empty: none has. Stops tells it of the others.
func TakenOver(l track.Lot) string {
	var all []string
	for _, n := range l.Nodes {
		if n.Newer != nil && n.State == run.Ready {
			all = append(all, fmt.Sprintf("%s became Ready in this lot, and that may hold no longer: %s", n.Node.Name, Newer(*n.Newer)))
		}
	}
	return paragraphs(all)
}

// LeftAlone says which nodes the lot's run leaves alone; empty: none.
func LeftAlone(l track.Lot) string {
	var names []string
	for _, n := range l.Nodes {
		if n.Earlier {
			names = append(names, n.Node.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("\nThe lot's last run leaves %s alone: shown is how an earlier run has left %s.\n", clip.Names(names), itOrThem(len(names)))
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// mostTold is how many nodes are told of one by one.
const mostTold = 20

// paragraphs sets sentences apart from each other, not more than are read.
func paragraphs(all []string) string {
	var b strings.Builder
	for _, text := range all[:min(len(all), mostTold)] {
		b.WriteString("\n" + text + "\n")
	}
	if more := len(all) - mostTold; more > 0 {
		fmt.Fprintf(&b, "\nand so it is with %d more\n", more)
	}
	return b.String()
}

// laterRuns sums up the newer runs of other lots on a lot's servers.
func laterRuns(newer []track.NewerRun) string {
	var lots []string
	states := map[string]map[run.State]int{}
	servers := map[string]int{}
	for _, r := range newer {
		if states[r.Lot] == nil {
			lots, states[r.Lot] = append(lots, r.Lot), map[run.State]int{}
		}
		states[r.Lot][r.State]++
		servers[r.Lot]++
	}
	var parts []string
	for _, lot := range lots {
		parts = append(parts, fmt.Sprintf("lot %s has, or had, %s of it since (%s)", lot, count.Of(servers[lot], "server"), byState(states[lot])))
	}
	return Clean(strings.Join(parts, "; "))
}
