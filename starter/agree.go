package main

import (
	"context"
	"slices"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// agreeToMore makes sure that a person wants erased what the corrected lot file
// lets runs erase and nobody has agreed to when they were started.
func (a *app) agreeToMore(ctx context.Context, corrected *prepared, chosen []track.Node, o retryFlags) error {
	if corrected == nil {
		return nil
	}
	more := *corrected.lot
	more.Nodes = corrected.more(chosen, o.anotherDisk)
	if len(more.Nodes) == 0 {
		return nil
	}
	return a.confirm(ctx, &more, nil, corrected.warnings, o.yes)
}

// more are those of the chosen nodes whose run may erase with this lot file what
// it could not before. Those that the file lacks are told of when it is their
// turn.
func (p *prepared) more(chosen []track.Node, anotherDisk bool) []lot.Node {
	var nodes []lot.Node
	for _, n := range p.lot.Nodes {
		i := slices.IndexFunc(chosen, func(c track.Node) bool { return c.Node.Name == n.Run.Name })
		if i >= 0 && erasesMore(chosen[i].Status, n.Run, anotherDisk) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// erasesMore reports whether a run may erase a live node, or another disk, that
// it could not erase before. One that has not told what it was started with
// counts as one that could erase neither.
func erasesMore(s *run.Status, corrected run.Node, anotherDisk bool) bool {
	var was run.Node
	if s != nil {
		was = s.Node
	}
	return corrected.Reprovision && !was.Reprovision || anotherDisk && corrected.Disks != was.Disks
}
