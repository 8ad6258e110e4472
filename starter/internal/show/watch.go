package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Watcher shows a lot again and again as it changes.
type Watcher interface {
	// Show shows the lot as it is now.
	Show(l track.Lot, now time.Time) error
	// Note shows a line that belongs to no node.
	Note(text string) error
}

// Live redraws one line a node on a terminal.
type Live struct {
	Out   io.Writer
	Size  func() (width, height int) // of the terminal, asked at every redraw
	Color bool

	lines int // drawn last time
}

// Show implements Watcher. When the terminal has too few lines, the nodes
// that still move come first and the rest is counted.
func (v *Live) Show(l track.Lot, now time.Time) error {
	width, height := v.Size()
	lines := v.frame(l, now, width, height)
	var b strings.Builder
	if v.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.lines)
	}
	for _, line := range lines {
		b.WriteString("\r\x1b[2K" + line + "\n")
	}
	b.WriteString("\x1b[J") // what is left of a longer frame
	v.lines = len(lines)
	_, err := io.WriteString(v.Out, b.String())
	return err
}

// Note implements Watcher.
func (v *Live) Note(text string) error {
	v.lines = 0
	_, err := fmt.Fprintln(v.Out, text)
	return err
}

func (v *Live) frame(l track.Lot, now time.Time, width, height int) []string {
	head := fmt.Sprintf("lot %s: %s", l.Name, Counts(l))
	if l.Lab {
		head += "  [SIMULATED]"
	}
	if l.NoWorker {
		head += "  [no worker answers]"
	}
	lines := []string{clip(head, width)}
	nodes := l.Nodes
	room := max(1, height-3)
	if len(nodes) > room {
		nodes = movingFirst(nodes)[:room]
	}
	name, phase := 4, len(run.RebootRescue)
	for _, n := range nodes {
		name = max(name, len(n.Node.Name))
	}
	for _, n := range nodes {
		text := fmt.Sprintf("%-*s  %-7s  %-*s  %6s  %s", name, n.Node.Name, n.State, phase, n.Phase, Took(n, now), Doing(n))
		lines = append(lines, v.paint(clip(strings.TrimRight(text, " "), width), name+len("  "), n.State))
	}
	if rest := len(l.Nodes) - len(nodes); rest > 0 {
		lines = append(lines, clip(fmt.Sprintf("… and %d more", rest), width))
	}
	return lines
}

// paint colours a node's state, which starts at a byte of the line.
func (v *Live) paint(line string, at int, state run.State) string {
	codes := map[run.State]string{run.Ready: "32", run.Stuck: "31", run.Aborted: "33", run.Refused: "33", run.Running: "36"}
	code, ok := codes[state]
	end := at + len(state)
	if !v.Color || !ok || len(line) < end || line[at:end] != string(state) {
		return line
	}
	return line[:at] + "\x1b[" + code + "m" + line[at:end] + "\x1b[0m" + line[end:]
}

func movingFirst(nodes []track.Node) []track.Node {
	var stuck, moving, rest []track.Node
	for _, n := range nodes {
		switch n.State {
		case run.Stuck:
			stuck = append(stuck, n)
		case run.Running:
			moving = append(moving, n)
		default:
			rest = append(rest, n)
		}
	}
	return append(append(stuck, moving...), rest...)
}

// Plain writes a line whenever a node's state or phase changes.
type Plain struct {
	Out  io.Writer
	seen map[string]string
}

// Show implements Watcher.
func (v *Plain) Show(l track.Lot, now time.Time) error {
	name := 0
	for _, n := range l.Nodes {
		name = max(name, len(n.Node.Name))
	}
	for _, n := range l.Nodes {
		if !changed(&v.seen, n) {
			continue
		}
		text := fmt.Sprintf("%s  %-*s  %-7s  %-*s  %s", now.UTC().Format(time.RFC3339), name, n.Node.Name, n.State, len(run.RebootRescue), n.Phase, Doing(n))
		text = strings.TrimRight(text, " ")
		if l.Lab {
			text += "  [simulated]"
		}
		if _, err := fmt.Fprintln(v.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// Note implements Watcher.
func (v *Plain) Note(text string) error {
	_, err := fmt.Fprintln(v.Out, text)
	return err
}

// changed reports whether a node is not where it was when it was seen last.
func changed(seen *map[string]string, n track.Node) bool {
	step := ""
	if n.Progress != nil {
		step = n.Progress.Step
	}
	is := fmt.Sprint(n.State, n.Phase, n.Attempt, n.Reason, step)
	if *seen == nil {
		*seen = map[string]string{}
	}
	if (*seen)[n.Node.Name] == is {
		return false
	}
	(*seen)[n.Node.Name] = is
	return true
}
