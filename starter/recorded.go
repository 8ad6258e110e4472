package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// recordedLot reads the histories that Temporal keeps of a lot's nodes. A
// node that was never started has none.
func (a *app) recordedLot(ctx context.Context, args []string) (history.Lot, error) {
	lot := history.Lot{Name: args[0]}
	c, err := a.connect(ctx)
	if err != nil {
		return lot, err
	}
	defer c.Close()
	l, err := track.New(c.Client, args[0]).Look(ctx)
	if err != nil {
		return lot, err
	}
	nodes := l.Nodes
	if len(args) == 2 {
		n, err := pick(l, args[1])
		if err != nil {
			return lot, err
		}
		nodes = []track.Node{n}
	} else if err := lotStory(ctx, c.Client, l, &lot); err != nil {
		return lot, err
	}
	var earlier, lost []string
	for _, n := range nodes {
		if n.RunID == "" {
			continue
		}
		h, err := history.Fetch(ctx, c.Client, n.WorkflowID, n.RunID)
		if gone := new(serviceerror.NotFound); n.Earlier && errors.As(err, &gone) {
			lost = append(lost, n.Node.Name)
			continue
		}
		if err != nil {
			return lot, fmt.Errorf("the history of node %s cannot be read: %w", n.Node.Name, err)
		}
		r, err := history.Read(n.WorkflowID, h, time.Now())
		if err != nil {
			return lot, err
		}
		lot.Nodes = append(lot.Nodes, *r)
		if n.Earlier {
			earlier = append(earlier, n.Node.Name)
		}
	}
	if len(earlier) > 0 {
		lot.Notes = append(lot.Notes, "told of earlier runs of the lot, the last one has left these nodes alone: "+clip.Names(earlier))
	}
	if len(lost) > 0 {
		lot.Notes = append(lot.Notes, "Temporal no longer keeps the histories of "+clip.Names(lost))
	}
	if len(lot.Nodes) == 0 {
		return lot, refuse("look at `starter status "+args[0]+"`", "no node of lot %s has been started, so there is no story to tell", args[0])
	}
	return lot, nil
}

// lotStory reads how the lot as a whole was steered, from all runs of its
// workflow that Temporal still keeps.
func lotStory(ctx context.Context, c client.Client, l track.Lot, into *history.Lot) error {
	into.Paused = l.Paused
	lost := 0
	for _, runID := range l.Runs {
		h, err := history.Fetch(ctx, c, run.LotID(l.Name), runID)
		if gone := new(serviceerror.NotFound); errors.As(err, &gone) {
			lost++
			continue
		}
		if err != nil {
			return fmt.Errorf("the history of lot %s cannot be read: %w", l.Name, err)
		}
		wishes, err := history.Wishes(run.LotID(l.Name), h)
		if err != nil {
			return err
		}
		into.Steers = append(into.Steers, wishes...)
	}
	if lost > 0 {
		into.Notes = append(into.Notes, fmt.Sprintf("of the %d runs of the lot's workflow Temporal keeps %d: pauses of the others are missing here", len(l.Runs), len(l.Runs)-lost))
	}
	return nil
}
