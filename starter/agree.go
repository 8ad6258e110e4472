package main

import (
	"context"

	"github.com/ironlot/ironlot/internal/lot"
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
// it could not before: a live node, or another disk. A run that has not told
// what it was started with counts as one that could erase neither.
func (p *prepared) more(chosen []track.Node, anotherDisk bool) []lot.Node {
	wider := map[string]bool{}
	for _, n := range chosen {
		in, err := p.node(n.Node.Name)
		if err != nil {
			continue // it is told of when it is its turn
		}
		reprovision, disks := false, in.Node.Disks
		if n.Status != nil {
			reprovision, disks = n.Status.Node.Reprovision, n.Status.Node.Disks
		}
		wider[n.Node.Name] = in.Node.Reprovision && !reprovision ||
			anotherDisk && (n.Status == nil || in.Node.Disks != disks)
	}
	var nodes []lot.Node
	for _, n := range p.lot.Nodes {
		if wider[n.Run.Name] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
