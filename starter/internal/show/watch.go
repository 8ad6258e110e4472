package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Watcher shows a lot again and again as it changes.
type Watcher interface {
	// Show shows the lot as it is now.
	Show(l track.Lot, now time.Time) error
	// Silent tells that the lot cannot be looked at, after each look that
	// failed. What was shown stays, and is old, until Show is called again.
	Silent(s Silence, now time.Time) error
	// Close ends the showing, so that others may write.
	Close() error
}

// Plain writes a line whenever a node's state or phase changes.
type Plain struct {
	Out io.Writer
	memory
}

// Silent implements Watcher.
func (v *Plain) Silent(s Silence, now time.Time) error {
	if !v.silence(true) {
		return nil
	}
	text := s.Text(now)
	if more := s.More(); more != "" {
		text += ": " + more
	}
	return v.line(now, text)
}

// line writes a line that is of no node.
func (v *Plain) line(now time.Time, text string) error {
	_, err := fmt.Fprintf(v.Out, "%s  %s\n", now.UTC().Format(time.RFC3339), text)
	return err
}

// Show implements Watcher.
func (v *Plain) Show(l track.Lot, now time.Time) error {
	if v.silence(false) {
		if err := v.line(now, fmt.Sprintf("Temporal answers again: lot %s is followed on", l.Name)); err != nil {
			return err
		}
	}
	if v.turned(l) {
		text := cmp.Or(Clean(l.Failing), queueText(l), "it goes on")
		if err := v.line(now, fmt.Sprintf("lot %s: %s", l.Name, text)); err != nil {
			return err
		}
	}
	name := 0
	for _, n := range l.Nodes {
		name = max(name, len(n.Node.Name))
	}
	for _, n := range l.Nodes {
		if !v.changed(n) {
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

// Close implements Watcher.
func (v *Plain) Close() error { return nil }

// memory is what was told of a lot, so that only news is told.
type memory struct {
	seen   map[string]string
	silent bool
}

// silence notes whether Temporal is silent, and reports whether that is new.
func (m *memory) silence(is bool) bool {
	was := m.silent
	m.silent = is
	return is != was
}

// turned reports whether the lot's workflow has begun or ceased to fail, was
// paused or resumed, or holds nodes for another cause than when it was seen last.
// That there is a place for the next node passes within a moment, and is no news.
func (m *memory) turned(l track.Lot) bool {
	var is []string
	if l.Failing != "" {
		is = append(is, "failing")
	}
	if l.Paused != nil {
		is = append(is, l.Paused.String())
	}
	for _, w := range l.Waits {
		is = append(is, string(w.Cause)+w.Remedy)
	}
	if len(is) == 0 && slices.ContainsFunc(l.Nodes, func(n track.Node) bool { return n.State == run.Queued }) && !strings.Contains(m.seen[lotItself], "failing") {
		return false
	}
	return m.differs(lotItself, strings.Join(is, "\n"))
}

// lotItself stands for the lot among the names of its nodes, none of which is
// empty.
const lotItself = ""

// queueText is why the lot starts no further node, or not yet, on one line.
func queueText(l track.Lot) string {
	var all []string
	for _, line := range Queue(l) {
		all = append(all, line.Text)
	}
	return strings.TrimPrefix(strings.Join(all, ". "), theLotIs)
}

// changed reports whether a node is not where it was when it was seen last.
func (m *memory) changed(n track.Node) bool {
	if _, known := m.seen[n.Node.Name]; n.Earlier && n.State.Final() && !known {
		return false // it has ended long before
	}
	step := ""
	if n.Progress != nil {
		step = n.Progress.Step
	}
	return m.differs(n.Node.Name, fmt.Sprint(n.State, n.Phase, n.Attempt, n.Reason, n.Waits != "", n.Aborting, n.Newer != nil, step))
}

// differs notes what is seen of somebody, and reports whether it is new.
func (m *memory) differs(name, is string) bool {
	if m.seen[name] == is {
		return false
	}
	if m.seen == nil {
		m.seen = map[string]string{}
	}
	m.seen[name] = is
	return true
}
