package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/run"
)

func (a *app) abortCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "abort LOT NODE",
		Short: "End a node's run and leave its server as it is",
		Long: `Ends a node's run. The server stays as it is: what is erased stays erased, and
` + "`starter status LOT NODE`" + ` tells what that is. The other nodes go on. A queued node
is ended before it starts: nothing of its server was touched.`,
		Args:              takes(2, argLot, argNode),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.abort(cmd.Context(), args[0], args[1], run.AbortRequest{Reason: reason, By: a.who()})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", reasonHelp)
	freeText(cmd, "reason")
	return cmd
}

func (a *app) abort(ctx context.Context, lotName, nodeName string, request run.AbortRequest) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	l, chosen, err := choose(ctx, c.Client, lotName, []string{nodeName})
	if err != nil {
		return err
	}
	n := chosen[0]
	d := done{Lot: lotName, Node: nodeName, Done: run.UpdateAbort, Simulated: l.Lab}
	if n.State == run.Queued && l.Open {
		// It has no run yet: the lot takes it off its list.
		request.Node = nodeName
		w := wish{update: run.UpdateAbort, whose: "lot " + lotName, remedy: func() string { return fmt.Sprintf("ask again with `starter abort %s %s`", lotName, nodeName) }}
		if err := w.send(ctx, c.Client, run.LotID(lotName), request); err != nil {
			return err
		}
		return a.said(d, fmt.Sprintf("%s is aborted before it was started; nothing of its server was touched", nodeName))
	}
	if err := steer(ctx, c.Client, l, n, run.UpdateAbort, request); err != nil {
		return err
	}
	return a.said(d, fmt.Sprintf("%s is being aborted; `starter status %s %s` tells how its server was left", nodeName, lotName, nodeName))
}
