package show

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Lots is the list of lots as a table. Width is the terminal's, 0: none.
func Lots(lots []track.Summary, now time.Time, wide bool, width int) string {
	head := []string{"LOT", "STATE", "READY", "RUNNING", "QUEUED", "STUCK", "OTHER", "STARTED", "TOOK"}
	if wide {
		head = append(head, "WORKFLOW", "RUN")
	}
	rows, whys := [][]string{append(head, "WHY")}, ""
	simulated := false
	for _, l := range lots {
		n := l.Counts
		end := now
		if !l.Ended.IsZero() {
			end = l.Ended
		}
		row := []string{
			l.Lot, state(l), fmt.Sprintf("%d/%d", n.Ready, l.Nodes), number(n.Running), number(n.Queued), number(n.Stuck),
			number(n.Aborted + n.Refused), l.Started.UTC().Format(time.DateTime), Duration(end.Sub(l.Started)),
		}
		if wide {
			row = append(row, l.WorkflowID, l.RunID)
		}
		why := ""
		if l.Stuck != nil {
			why = strings.TrimSuffix("first stuck is "+l.Stuck.Node+": "+Clean(l.Stuck.Reason), ": ")
			whys += fmt.Sprintf("\nlot %s: %s\n", l.Lot, why)
		}
		if l.Paused != nil {
			paused := Clean(l.Paused.String())
			whys += fmt.Sprintf("\nlot %s: %s\n", l.Lot, paused)
			why = strings.TrimPrefix(why+"; "+paused, "; ")
		}
		rows = append(rows, append(row, why))
		simulated = simulated || l.Simulated
	}
	text := Table(rows)
	if wide || width <= 0 || narrow(text, width) {
		return text + lab(simulated)
	}
	for i := range rows { // reasons are not to be cut: they go below
		rows[i] = rows[i][:len(rows[i])-1]
	}
	return clipLines(Table(rows), width) + Wrap(whys, width) + lab(simulated)
}

// state is how a lot stands, for people.
func state(l track.Summary) string {
	switch {
	case l.Paused == nil:
		return string(l.State)
	case l.State == run.Running:
		return "paused"
	default:
		return string(l.State) + ", paused"
	}
}

// narrow reports whether no line is wider than width.
func narrow(text string, width int) bool {
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
			return false
		}
	}
	return true
}

// Inventory is the list of provisioned servers as a table.
func Inventory(items []track.Item, wide bool, width int) string {
	head := []string{"NODE", "SERVER", "TALOS", "IMAGE DATA", "SYSTEM DISK", "READY", "LOT", "NEWER RUN"}
	if wide {
		head = append(head, "ADDRESS", "ZONE", "SERVER ID", "OTHER DISKS", "CONFIG", "CONFIRMED", "RUN")
	}
	rows := [][]string{head}
	simulated := false
	for _, i := range items {
		newer, disk := "", ""
		if i.Newer != nil {
			newer = string(i.Newer.State) + ", lot " + i.Newer.Lot
		}
		if i.SystemDisk != nil {
			disk = Clean(i.SystemDisk.Label())
		}
		row := []string{i.Node, Clean(i.Server), Clean(i.TalosVersion), short(i.ImageDataSHA256), disk, i.Ready.UTC().Format(time.DateTime), i.Lot, newer}
		if wide {
			row = append(row, i.Address, i.Zone, i.ServerID, labels(i.SecondaryDisks), short(i.ConfigSHA256), confirmed(i.Confirmed), i.RunID)
		}
		rows = append(rows, row)
		simulated = simulated || i.Simulated
	}
	if wide {
		width = 0
	}
	return clipLines(Table(rows), width) + lab(simulated)
}

func confirmed(c *track.Confirmation) string {
	if c == nil {
		return ""
	}
	return c.At.UTC().Format(time.DateTime) + ", lot " + c.Lot
}

func labels(disks []run.Disk) string {
	var all []string
	for _, d := range disks {
		all = append(all, Clean(d.Label()))
	}
	return strings.Join(all, ", ")
}

// short is the beginning of a digest, which is enough to compare.
func short(digest string) string { return digest[:min(12, len(digest))] }

// number leaves a zero out, so that the others are seen.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func lab(simulated bool) string {
	if !simulated {
		return ""
	}
	return Simulated + "\n"
}

// clipLines cuts each line to a width; 0 is without end.
func clipLines(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(clip(strings.TrimSuffix(line, "\n"), width) + "\n")
	}
	return b.String()
}
