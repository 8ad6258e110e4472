package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Detail is everything about one node: where it is, what was observed, and
// the story so far.
func Detail(l track.Lot, n track.Node, now time.Time) string {
	var b strings.Builder
	if l.Lab {
		b.WriteString(Simulated + "\n\n")
	}
	fmt.Fprintf(&b, "node      %s of lot %s\n", n.Node.Name, l.Name)
	fmt.Fprintf(&b, "server    %s (%s, %s)\n", Clean(n.Node.ServerName), n.Node.ServerID, n.Node.Zone)
	fmt.Fprintf(&b, "workflow  %s\n", n.WorkflowID)
	fmt.Fprintf(&b, "state     %s %s\n", State(n), n.Phase)
	if n.Newer != nil {
		fmt.Fprintf(&b, "since     %s\n", Newer(*n.Newer))
	} else if doing := Doing(n); doing != "" && !n.Settled() {
		fmt.Fprintf(&b, "doing     %s\n", doing)
		b.WriteString(until(n.Progress, now))
	}
	if n.Status == nil {
		if l.NoWorker && n.Waits == "" {
			b.WriteString("\nNo worker answers, so the rest of the story is not known; start a worker.\n")
		}
		return b.String()
	}
	for _, f := range facts(n.Status.Facts) {
		fmt.Fprintf(&b, "%-9s %s\n", f[0], Clean(f[1]))
	}
	rows := [][]string{{"PHASE", "STARTED", "TOOK", "OUTCOME"}}
	for _, r := range n.Status.Timeline {
		rows = append(rows, []string{string(r.Phase), r.Started.UTC().Format(time.RFC3339), took(r, now), outcome(r)})
	}
	b.WriteString("\n" + Table(rows))
	if n.State != run.Ready && n.Settled() {
		b.WriteString(Stops(track.Lot{Name: l.Name, Nodes: []track.Node{n}}))
	}
	if p := n.Status.Problem; p != nil && p.Tail != "" {
		b.WriteString("\nend of the remote output:\n")
		for line := range strings.Lines(strings.TrimSpace(p.Tail)) {
			b.WriteString("  | " + Clean(line) + "\n")
		}
	}
	return b.String()
}

// until tells when what a node does has ended by itself at the latest.
func until(p *run.Progress, now time.Time) string {
	if p == nil || !p.Until.After(now) {
		return ""
	}
	return fmt.Sprintf("until     %s at the latest (in %s)\n", p.Until.UTC().Format(time.RFC3339), Duration(p.Until.Sub(now)))
}

func took(r run.PhaseRecord, now time.Time) string {
	if r.Ended.IsZero() {
		return Duration(now.Sub(r.Started)) + "…"
	}
	return Duration(r.Ended.Sub(r.Started))
}

func outcome(r run.PhaseRecord) string {
	switch {
	case r.Error != "":
		return Clean(r.Class + ": " + r.Error)
	case r.Ended.IsZero():
		return "at work"
	default:
		return Clean(r.Summary)
	}
}

// facts lists what was observed, as far as the run has come.
func facts(f run.Facts) [][2]string {
	var out [][2]string
	add := func(name, format string, args ...any) {
		out = append(out, [2]string{name, fmt.Sprintf(format, args...)})
	}
	if f.Address != "" {
		add("address", "%s", f.Address)
	}
	if r := f.Rescue; r != nil && r.BootID != "" {
		add("rescue", "boot %s, %s %s, host key %s", r.BootID, r.Kernel, r.Arch, r.HostKey)
	}
	if d := f.System; d != nil {
		add("disk", "%s (%s, %s)", d.Label(), Clean(d.Model), size.Text(d.Size))
	}
	for _, d := range f.Secondary {
		add("other", "%s (%s, %s)", d.Label(), Clean(d.Model), size.Text(d.Size))
	}
	if s := f.Staged; s != nil {
		add("image", "%s, raw %s, %s", s.Format, size.Text(s.RawSize), s.Digest())
	}
	if w := f.Written; w != nil {
		add("written", "%s, %s read back, %s", size.Text(w.BytesWritten), size.Text(w.BytesVerified), size.Rate(w.MBPerSecond*1e6))
	}
	if r := f.Ready; r != nil {
		add("ready", "%s, Talos %s", r.NodeName, r.TalosVersion)
	}
	return out
}
