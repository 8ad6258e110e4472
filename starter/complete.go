package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/starter/internal/track"
)

// completeTimeout bounds how long a person waits for a completion.
const completeTimeout = 3 * time.Second

// completeLot completes LOT alone.
func (a *app) completeLot(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeLotAndNode(cmd, args, typed)
}

// completeLotAndNode completes LOT and NODE with what Temporal knows. Where
// nothing is known nothing is offered.
func (a *app) completeLotAndNode(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	c, err := a.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	var names []string
	switch len(args) {
	case 0:
		lots, err := track.Lots(ctx, c.Client, listed)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, l := range lots {
			names = append(names, l.Lot)
		}
	case 1:
		l, err := track.New(c.Client, args[0]).Look(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, n := range l.Nodes {
			names = append(names, n.Node.Name+"\t"+string(n.State))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
