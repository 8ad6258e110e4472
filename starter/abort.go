package main

import (
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
` + "`starter status LOT NODE`" + ` tells what that is. The other nodes go on.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := a.steer(cmd.Context(), args[0], args[1], run.UpdateAbort, run.AbortRequest{Reason: reason})
			if err != nil {
				return err
			}
			return a.said(n, run.UpdateAbort, fmt.Sprintf("%s is being aborted; `starter status %s %s` tells how its server was left", args[1], args[0], args[1]))
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	return cmd
}
