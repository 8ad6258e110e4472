package history

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/run"
)

// Markdown writes the lot's story as Markdown.
func (l Lot) Markdown(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# Lot %s\n\n", l.Name)
	if l.simulated() {
		b.WriteString("**Lab: these machines are simulated.**\n\n")
	}
	fmt.Fprintf(b, "%s\n\n", l.headline())
	l.wishes(b)
	nodes := l.byInterest()
	for _, n := range stopped(nodes) {
		if n.Problem != nil {
			fmt.Fprintf(b, "- **%s** is %s\n", n.Node.Name, run.Told(n.State, n.Problem.Phase, line(n.Problem.Message)))
			n.whatToDo(b, "  ")
		}
	}
	if node, p := l.FirstFailure(); p != nil {
		fmt.Fprintf(b, "\nFirst failure: **%s** in %s at %s: %s\n\n", node, p.Phase, clock(p.Ended), line(p.Message))
	}
	if len(l.Nodes) > 1 {
		b.WriteString("Phases that were passed, the slowest in the median first:\n\n| phase | median | slowest | node |\n|---|---|---|---|\n")
		for _, t := range l.Phases() {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", t.Phase, seconds(t.Median), seconds(t.Max), t.Node)
		}
		b.WriteString("\n")
	}
	for _, d := range l.Deviations() {
		fmt.Fprintf(b, "- %s took %s for %s, the median is %s\n", d.Node, seconds(d.Took), d.Phase, seconds(d.Median))
	}
	for _, n := range nodes {
		n.markdown(b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wishes tells how the lot as a whole was steered.
func (l Lot) wishes(b *strings.Builder) {
	if l.Paused != nil {
		fmt.Fprintf(b, "The lot is %s, since %s.\n\n", line(l.Paused.String()), clock(l.Paused.At))
	}
	for _, s := range l.Steers {
		fmt.Fprintf(b, "%s: %s\n\n", clock(s.At), s)
	}
	for _, note := range l.Notes {
		fmt.Fprintf(b, "Note: %s.\n\n", note)
	}
}

func (r *Report) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s: %s\n\n", r.Node.Name, r.State)
	fmt.Fprintf(b, "Server %s (%s, %s), run %s of %s\n\n", r.Node.ServerName, r.Node.ServerID, r.Node.Zone, r.RunID, r.WorkflowID)
	if p := r.Problem; p != nil {
		fmt.Fprintf(b, "**%s (%s): %s**\n\n", p.Phase, p.Class, line(p.Message))
		r.whatToDo(b, "")
		if p.Erased != "" {
			fmt.Fprintf(b, "Erased: %s\n\n", p.Erased)
		}
	}
	b.WriteString("| began | phase | took | attempts | outcome |\n|---|---|---|---|---|\n")
	for _, p := range r.Passes {
		fmt.Fprintf(b, "| %s | %s | %s | %d | %s |\n", clock(p.Asked), p.title(), seconds(p.Took(r.Read)), p.Attempts, cell(p.text()))
	}
	for _, s := range r.Steers {
		fmt.Fprintf(b, "\n%s: %s\n", clock(s.At), s)
	}
	b.WriteString("\n" + r.lost() + "\n")
	for _, p := range r.Passes {
		if p.Log != "" {
			fmt.Fprintf(b, "\n### %s on the machine\n\n```\n%s\n```\n", p.title(), strings.ReplaceAll(strings.TrimRight(p.Log, "\n"), "```", "'''"))
		}
	}
}

// lost says where time was lost, and that a stuck run still loses it. An
// exported history may end as soon as its run is stuck.
func (r *Report) lost() string {
	n := len(r.Passes)
	text := ""
	switch {
	case n == 0:
	case r.State == run.Stuck:
		text = "It waits for a person since " + clock(r.Passes[n-1].Ended) + "."
	case r.Passes[n-1].Outcome == Open: // whether that is lost nobody knows yet
		text = fmt.Sprintf("It is in %s since %s.", r.Passes[n-1].Phase, clock(r.Passes[n-1].Asked))
	}
	switch {
	case text == "":
		return r.Lost.String()
	case r.Lost.some():
		return r.Lost.String() + " " + text
	default:
		return text
	}
}

// some reports whether time was lost that is worth a word.
func (l Lost) some() bool { return max(l.Person, l.Failed, l.Retried, l.Workers) >= time.Second }

// String says where time was lost.
func (l Lost) String() string {
	if !l.some() {
		return "No time was lost."
	}
	var parts []string
	for _, p := range []struct {
		d    time.Duration
		what string
	}{{l.Person, "waiting for a person"}, {l.Failed, "in passes that failed"}, {l.Retried, "in attempts that were tried again"}, {l.Workers, "waiting for a worker"}} {
		if p.d >= time.Second {
			parts = append(parts, seconds(p.d)+" "+p.what)
		}
	}
	return "Time lost: " + strings.Join(parts, ", ") + "."
}

func (l Lot) simulated() bool { return len(l.Nodes) > 0 && l.Nodes[0].Node.Lab }

// headline counts the nodes by state.
func (l Lot) headline() string {
	states := l.States()
	var parts []string
	for _, s := range []run.State{run.Ready, run.Stuck, run.Aborted, run.Running} {
		if states[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	return fmt.Sprintf("%s: %s.", count.Of(len(l.Nodes), "node"), strings.Join(parts, ", "))
}

// title names the pass: the phase, and which time it is if not the first.
func (p Pass) title() string {
	if p.Number > 1 {
		return fmt.Sprintf("%s (%d)", p.Phase, p.Number)
	}
	return string(p.Phase)
}

// text is how the pass ended, for people.
func (p Pass) text() string {
	switch p.Outcome {
	case Proved:
		return p.Summary
	case Failed:
		return p.Class + ": " + p.Message
	case Canceled:
		return "cancelled"
	case Open:
		return "still at work"
	}
	return string(p.Outcome)
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// line keeps a text on one line; cell keeps it inside a table's cell too.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

func cell(s string) string { return strings.ReplaceAll(line(s), "|", `\|`) }

// whatToDo writes what to do about a node that has stopped, and how it goes on.
func (r *Report) whatToDo(b *strings.Builder, indent string) {
	if r.Problem.Remedy != "" {
		fmt.Fprintf(b, "%sWhat to do: %s\n\n", indent, line(r.Problem.Remedy))
	}
	if next := r.next(); next != "" {
		fmt.Fprintf(b, "%s%s\n\n", indent, next)
	}
}

// next is how a node that waits for a person goes on, empty for all others.
func (r *Report) next() string {
	if r.State != run.Stuck || r.Problem == nil {
		return ""
	}
	return r.Problem.Next(r.Node)
}
