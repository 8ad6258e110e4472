package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// completeTimeout bounds how long a person waits for a completion.
const completeTimeout = 3 * time.Second

// words completes a flag that takes one of a few words.
func words(cmd *cobra.Command, flag string, words ...string) {
	// It fails for unknown flags only.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// freeText leaves flags without a completion whose value nobody can guess: a file is
// none of them.
func freeText(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

// completeNodes completes the nodes that a lot file names, for --node.
func completeNodes(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1] // nodes may stand in one flag
	l, err := lot.Load(cmd.Flag("batch").Value.String())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, n := range l.Nodes {
		names = append(names, before+n.Run.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

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
