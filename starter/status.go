package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [LOT [NODE]]",
		Short: "Show the lots, a lot's nodes, or all about a node",
		Long: `Without arguments the lots that Temporal remembers, as ` + "`starter lots`" + `. With a
lot its nodes, the time that each spent in each phase, and why queued ones wait.
A state with a * may hold no longer: a later run of another lot has, or had, the
node's server. With a node its facts and its story. The exit code tells how the
lot's runs, or the node's, have ended or stand.`,
		Args:              takes(0, argMaybeLot, argMaybeNode),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case watch && len(args) == 0:
				return refuse("name the lot", "--watch needs one lot")
			case watch && len(args) == 2:
				return refuse("leave out the node", "--watch shows a whole lot")
			}
			return a.status(cmd.Context(), args, watch)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "watch the lot until every node is Ready or needs a person")
	return cmd
}

func (a *app) status(ctx context.Context, args []string, watch bool) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if len(args) == 0 {
		return a.listLots(ctx, c.Client, listed)
	}
	tracker := tracking(c, args[0])
	if watch {
		return a.follow(ctx, tracker, args[0], c.Address, whole)
	}
	l, err := tracker.Look(ctx)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if err := a.result(l, c.Address); err != nil {
			return err
		}
		return outcome(l)
	}
	n, err := pick(l, args[1])
	if err != nil {
		return err
	}
	l.Nodes = []track.Node{n}
	if a.structured() {
		err = a.encode(n)
	} else {
		_, err = fmt.Fprint(a.stdout, show.Wrap(show.Detail(l, n, time.Now()), a.width()))
	}
	if err != nil {
		return err
	}
	return outcome(l)
}

// whole is all of a lot.
func whole(l track.Lot) track.Lot { return l }
