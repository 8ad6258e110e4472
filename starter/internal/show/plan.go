package show

import (
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
)

// spared marks what is not erased as long as what the last run left is there.
const spared = "not erased *"

// Plan tells what a lot will erase, and with what. The nodes whose server's last
// run ended Ready are known by name: they are left alone if that still holds. What
// one has to agree to is whole on a terminal of a width in columns, 0: any.
func Plan(l *lot.Lot, ready map[string]bool, warnings []string, width int) string {
	var b strings.Builder
	if l.Lab {
		b.WriteString(Simulated + "\n\n")
	}
	fmt.Fprintf(&b, "Lot %s: %s in %s to become Talos nodes. What is ERASED:\n\n", l.Name, count.Of(len(l.Nodes), "server"), l.Nodes[0].Run.Zone)
	rows := [][]string{{"NODE", "SERVER", "SERVER ID", "SYSTEM DISK", "OTHERS"}}
	some := false
	for _, n := range l.Nodes {
		system, other := Choice(n.Run.Disks.System), "ERASED"
		switch {
		case ready[n.Run.Name] && !n.Run.Reprovision:
			system, other, some = spared, spared, true
		case n.Run.Disks.Secondary == run.Keep:
			other = "kept"
		}
		rows = append(rows, []string{n.Run.Name, Clean(n.Run.ServerName), n.Run.ServerID, system, other})
	}
	b.WriteString(erased(rows, width))
	b.WriteString("\nThe system disk is erased for Talos. Other disks marked ERASED get an empty GPT.\n")
	if some {
		b.WriteString(`* The last run on this server ended Ready. If Talos still answers there nothing
  is erased: a node that is Ready with its config of this lot is left alone, any
  other is refused. If no Talos answers, the disks are ERASED as the file says.
`)
	}
	image := l.Nodes[0].Run.Image
	fmt.Fprintf(&b, "\nimage   %s\n", image.URL)
	for _, d := range [][2]string{{"sha256", image.SHA256}, {"raw", image.RawSHA256}} {
		if d[1] != "" {
			fmt.Fprintf(&b, "%-6s  %s\n", d[0], d[1])
		}
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", Clean(w))
	}
	return b.String()
}

// erased is the table of what is erased. On a narrow terminal the IDs of servers
// stand below it.
func erased(rows [][]string, width int) string {
	if fits(rows, width) {
		return Table(rows)
	}
	var ids [][]string
	for _, r := range rows {
		ids = append(ids, r[1:3])
	}
	return Table(without(rows, "SERVER ID")) + "\n" + Table(ids)
}

// Choice says a disk rule in words.
func Choice(c run.DiskChoice) string {
	var parts []string
	switch {
	case c.Serial != "":
		parts = append(parts, "serial "+c.Serial)
	case c.WWN != "":
		parts = append(parts, "WWN "+c.WWN)
	case c.ByID != "":
		parts = append(parts, "by-id "+c.ByID)
	case c.Smallest:
		parts = append(parts, "the smallest")
	default:
		parts = append(parts, "the only one")
	}
	if c.MinSize > 0 {
		parts = append(parts, "of "+size.Bound(c.MinSize)+" or more")
	}
	if c.MaxSize > 0 {
		parts = append(parts, "of "+size.Bound(c.MaxSize)+" or less")
	}
	return Clean(strings.Join(parts, " "))
}
