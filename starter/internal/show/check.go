package show

import (
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// Checking tells how far the check of a lot has come.
func Checking(lot string, c track.Checking) string {
	if c.Waits {
		return fmt.Sprintf("the check of lot %s waits for a worker: if none runs, start one, or `starter up`", lot)
	}
	return fmt.Sprintf("checking lot %s: %d of %s", lot, c.Done, count.Of(c.Total, "server"))
}

// Check tells what a dry run found out about each node of a lot.
func Check(l *lot.Lot, c run.LotCheck) string {
	var b strings.Builder
	good := 0
	for i, n := range c.Nodes {
		fmt.Fprintf(&b, "%s (server %s)\n", n.Name, Clean(l.Nodes[i].Run.ServerName))
		if p := n.Problem; p != nil {
			fmt.Fprintf(&b, "  REFUSED  %s\n", Clean(p.Message))
			if p.Remedy != "" {
				fmt.Fprintf(&b, "  remedy   %s\n", Clean(p.Remedy))
			}
			continue
		}
		good++
		if ready := n.Facts.Ready; ready != nil {
			fmt.Fprintf(&b, "  READY    it is this lot's node %s with the lot's config, Talos %s: it is left alone, nothing is erased\n", Clean(ready.NodeName), Clean(ready.TalosVersion))
			continue
		}
		fmt.Fprintf(&b, "  erase    %s\n", erases(l.Nodes[i].Run, n.Facts))
		fmt.Fprintf(&b, "  reboots  %s\n", reboots(l.Nodes[i].Run, n.Facts))
		if checked := n.Facts.Preflight; checked != nil {
			fmt.Fprintf(&b, "  config   %s\n", config(checked.Config))
			for _, w := range checked.Warnings {
				fmt.Fprintf(&b, "  warning  %s\n", Clean(w))
			}
		}
	}
	fmt.Fprintf(&b, "\nDry run of lot %s: %d of %d nodes pass preflight. Nothing was touched.\n", l.Name, good, len(c.Nodes))
	return b.String()
}

func erases(n run.Node, f run.Facts) string {
	if f.System == nil {
		return Choice(n.Disks.System) + others(n, "; serials are known once the server is in rescue")
	}
	disks := []string{label(*f.System) + " for Talos"}
	for _, d := range f.Secondary {
		disks = append(disks, label(d)+" to an empty GPT")
	}
	return strings.Join(disks, ", ")
}

func others(n run.Node, note string) string {
	if n.Disks.Secondary == run.Keep {
		return " for Talos" + note
	}
	return " for Talos, all others to an empty GPT" + note
}

func label(d run.Disk) string { return fmt.Sprintf("%s (%s)", Clean(d.Label()), size.Text(d.Size)) }

func reboots(n run.Node, f run.Facts) string {
	if f.Rescue != nil && f.Rescue.Reused {
		return "1: into Talos; the server is in rescue already"
	}
	if n.Rescue.Fresh {
		return "2: into rescue (the lot asks for a fresh boot), into Talos"
	}
	return "2: into rescue, into Talos"
}

func config(p *run.ConfigPlan) string {
	switch {
	case p == nil:
		return "not looked at"
	case p.Running == "":
		return fmt.Sprintf("%s %s, sha256 %.12s; the server runs none that could be compared: %s", p.Type, p.Hostname, p.SHA256, Clean(p.Unread))
	case len(p.Changes) == 0:
		return fmt.Sprintf("%s %s, sha256 %.12s: what the server runs now", p.Type, p.Hostname, p.SHA256)
	}
	const most = 12
	keys, more := p.Changes, ""
	if len(keys) > most {
		keys, more = keys[:most], fmt.Sprintf(" and %d more", len(keys)-most)
	}
	return fmt.Sprintf("%s %s, sha256 %.12s; the server runs %.12s, which differs in %s%s",
		p.Type, p.Hostname, p.SHA256, p.Running, Clean(strings.Join(keys, ", ")), more)
}
