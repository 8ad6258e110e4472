package show

import (
	"fmt"
	"slices"
	"time"

	"github.com/ironlot/ironlot/starter/internal/track"
)

// Inventory is the list of provisioned servers as a table. On a narrow terminal
// columns give way, and what a newer run may have made untrue stands below it.
func Inventory(items []track.Item, wide bool, width int) string {
	rows, simulated := inventoryRows(items, wide), false
	for _, i := range items {
		simulated = simulated || i.Simulated
	}
	if wide || fits(rows, width) {
		return Table(rows) + lab(simulated)
	}
	for _, title := range []string{"NEWER RUN", "IMAGE DATA", "SYSTEM DISK", "TALOS"} {
		if !fits(rows, width) {
			rows = without(rows, title)
		}
	}
	return clipLines(Table(rows), width) + Wrap(newerRuns(items), width) + lab(simulated)
}

// inventoryRows has a row a server, of which those with a newer run are marked.
func inventoryRows(items []track.Item, wide bool) [][]string {
	head := []string{"NODE", "SERVER", "TALOS", "IMAGE DATA", "SYSTEM DISK", "READY", "LOT", "NEWER RUN"}
	if wide {
		head = append(head, "ADDRESS", "ZONE", "SERVER ID", "OTHER DISKS", "CONFIG", "CONFIRMED", "RUN")
	}
	rows := [][]string{head}
	for _, i := range items {
		node, newer, disk := i.Node, "", ""
		if i.Newer != nil {
			node, newer = node+mark, string(i.Newer.State)+", lot "+i.Newer.Lot
		}
		if i.SystemDisk != nil {
			disk = Clean(i.SystemDisk.Label())
		}
		row := []string{node, Clean(i.Server), Clean(i.TalosVersion), short(i.ImageDataSHA256), disk, i.Ready.UTC().Format(time.DateTime), i.Lot, newer}
		if wide {
			row = append(row, i.Address, i.Zone, i.ServerID, labels(i.SecondaryDisks), short(i.ConfigSHA256), confirmed(i.Confirmed), i.RunID)
		}
		rows = append(rows, row)
	}
	return rows
}

// newerRuns says of each server with a newer run whose that is.
func newerRuns(items []track.Item) string {
	var all []string
	for _, i := range items {
		if i.Newer != nil {
			all = append(all, fmt.Sprintf("%s%s what is listed may hold no longer: %s", i.Node, mark, Newer(*i.Newer)))
		}
	}
	return paragraphs(all)
}

// Elsewhere says of servers that a lot has made Ready, and that are not listed
// for it, which lot has installed them since.
func Elsewhere(lot string, items []track.Item) string {
	var all []string
	for _, i := range items {
		all = append(all, fmt.Sprintf("server %s was a node of lot %s, and lot %s has installed it anew as %s, Ready on %s; see `starter inventory %s`",
			Clean(i.Server), lot, i.Lot, i.Node, i.Ready.UTC().Format(time.DateTime), i.Lot))
	}
	return paragraphs(all)
}

// without leaves out the column of a title.
func without(rows [][]string, title string) [][]string {
	at := slices.Index(rows[0], title)
	if at < 0 {
		return rows
	}
	narrower := make([][]string, len(rows))
	for i, row := range rows {
		narrower[i] = slices.Delete(slices.Clone(row), at, at+1)
	}
	return narrower
}
