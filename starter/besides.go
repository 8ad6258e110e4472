package main

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// besides takes up the nodes that the lot's last run has left and this one does
// not name. When a person has chosen some nodes the others stay the lot's; the
// whole of a file is the lot. What is the lot's no longer is said, and refused as
// long as it is at work: nobody would look after it.
func (p *prepared) besides(last track.Lot, some bool) error {
	if some {
		p.in.Others = last.Others(p.in.Whole())
	}
	stays := map[string]bool{}
	for _, n := range p.in.Whole() {
		stays[n.Node.Name+n.Node.ID()] = true
	}
	for _, o := range p.in.Others {
		stays[o.Node.Name+o.Node.ID()] = true
	}
	var dropped []string
	var problems []error
	for _, n := range last.Nodes {
		switch {
		case stays[n.Node.Name+n.WorkflowID]:
		case !n.State.Final():
			problems = append(problems, refuse(fmt.Sprintf("end it first with `starter abort %s %s`", last.Name, n.Node.Name),
				"node %s of lot %s is at work still on server %s (%s in %s), and would be the lot's no longer", n.Node.Name, last.Name, n.Node.ServerName, n.State, n.Phase))
		default:
			dropped = append(dropped, fmt.Sprintf("%s on %s", n.Node.Name, n.Node.ServerName))
		}
	}
	if len(dropped) > 0 {
		p.warnings = append(p.warnings, "these nodes of the lot's last run stay as they are and are no longer shown with it: "+clip.Names(dropped)+p.keep(some))
	}
	return errors.Join(append(problems, p.bounded())...)
}

// keep is how nodes that a file does not have stay the lot's.
func (p *prepared) keep(some bool) string {
	if some { // their names or servers are other nodes' now
		return ""
	}
	return "; they stay the lot's when --node names those to provision"
}

// bounded makes the input fit: what is told of nodes that are left alone gives
// way, for their own runs tell it too.
func (p *prepared) bounded() error {
	err := inOnePayload(p.in)
	if err == nil || len(p.in.Others) == 0 {
		return err
	}
	for i := range p.in.Others {
		p.in.Others[i].Reason = ""
	}
	if err := inOnePayload(p.in); err != nil {
		return refuse("provision the lot's whole file, or give these nodes a lot of their own", "the lot has too many other nodes to be left alone: %d (%w)", len(p.in.Others), err)
	}
	return nil
}

// unchanged refuses to start a lot that somebody has started since it was looked
// at: what that run has done would be lost from the lot.
func unchanged(ctx context.Context, c client.Client, name string, last track.Lot) error {
	now, err := track.Glance(ctx, c, name)
	if none := new(track.NotFoundError); errors.As(err, &none) {
		return nil
	}
	if err != nil || now.RunID == last.RunID {
		return err
	}
	return refuse(fmt.Sprintf("look at it with `starter status %s`, and ask again", name), "lot %s was started by somebody else meanwhile (workflow %s, run %s), so nothing was started", name, run.LotID(name), now.RunID)
}
