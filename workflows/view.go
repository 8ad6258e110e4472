package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/run"
)

// maxSummary is Temporal's limit for summaries, in bytes.
const maxSummary = 200

// show brings the Web UI up to date: search attributes for lists, current
// details in Markdown for the run's own page.
func (n *node) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, details(n.status))
	state, phase := temporal.NewSearchAttributeKeyKeyword(run.AttrState), temporal.NewSearchAttributeKeyKeyword(run.AttrPhase)
	now := workflow.GetTypedSearchAttributes(ctx)
	s, _ := now.GetKeyword(state)
	p, _ := now.GetKeyword(phase)
	if s == string(n.status.State) && p == string(n.status.Phase) {
		return // each is an event, and a write of Temporal's database
	}
	err := workflow.UpsertTypedSearchAttributes(ctx, phase.ValueSet(string(n.status.Phase)), state.ValueSet(string(n.status.State)))
	if err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not updated", "error", err)
	}
}

// details is the run as a page of Markdown.
func details(s run.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s in %s\n\n", s.Node.Name, s.State, s.Phase)
	if s.Node.Lab {
		b.WriteString("**Lab: this machine is simulated.**\n\n")
	}
	fmt.Fprintf(&b, "Lot **%s**, server **%s** (`%s`, %s)\n\n", s.Node.Lot, s.Node.ServerName, s.Node.ServerID, s.Node.Zone)
	if p := s.Problem; p != nil {
		fmt.Fprintf(&b, "**%s** (%s): %s\n\n", p.Phase, p.Class, p.Message)
		if p.Remedy != "" {
			fmt.Fprintf(&b, "**What to do:** %s\n\n", p.Remedy)
		}
		if p.Left != "" {
			fmt.Fprintf(&b, "**The server is left:** %s\n\n", p.Left)
		}
		fmt.Fprintf(&b, "**Erased:** %s\n\n", p.Erased)
		if s.State == run.Stuck {
			b.WriteString(p.Next(s.Node) + "\n\n")
		}
	}
	if s.Notice != "" {
		fmt.Fprintf(&b, "**Notice:** %s\n\n", s.Notice)
	}
	b.WriteString("| phase | took | what was proved |\n|---|---|---|\n")
	for _, r := range s.Timeline {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Phase, took(r), cell(outcome(r)))
	}
	return b.String() + foot
}

// foot is an empty paragraph: the Web UI (2.42) cuts the end of a page that has a
// table.
const foot = "\n\u00a0\n"

func took(r run.PhaseRecord) string {
	if r.Ended.IsZero() {
		return "…"
	}
	return r.Ended.Sub(r.Started).Round(100 * time.Millisecond).String()
}

func outcome(r run.PhaseRecord) string {
	switch {
	case r.Error != "":
		return r.Class + ": " + r.Error
	case r.Ended.IsZero():
		return "at work"
	default:
		return r.Summary
	}
}

// cell keeps a text inside a Markdown table's cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ").Replace(s)
}

// lotDetails is the lot as a page of Markdown: the nodes that need a person
// first.
func lotDetails(s run.LotStatus) string {
	states := map[run.State]int{}
	for _, n := range s.Nodes {
		states[n.State]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### Lot %s: %d of %d Ready\n\n", s.Lot, states[run.Ready], len(s.Nodes))
	for _, state := range []run.State{run.Stuck, run.Refused, run.Aborted, run.Running, run.Queued} {
		if states[state] > 0 {
			fmt.Fprintf(&b, "- %d %s\n", states[state], state)
		}
	}
	if s.Others > 0 {
		fmt.Fprintf(&b, "\nThis run leaves %s of the lot alone; `starter status %s` shows all.\n", count.Of(s.Others, "other node"), s.Lot)
	}
	for _, w := range s.Waits {
		fmt.Fprintf(&b, "\n%s because %s\n", count.Do(len(w.Nodes), "node", "wait"), cell(w.Why(s.Paused)))
	}
	const most, longestReason = 50, 500
	shown := 0
	for _, n := range s.Nodes {
		if n.Reason == "" || shown == most {
			continue
		}
		if shown++; shown == 1 {
			fmt.Fprintf(&b, "\n`starter status %s` says what to do about each of them:\n", s.Lot)
			b.WriteString("\n| node | state | why |\n|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", n.Name, n.State, cell(clip.End(n.Reason, longestReason)))
	}
	return b.String() + foot
}
