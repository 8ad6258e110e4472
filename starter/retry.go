package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/run"
)

func (a *app) retryCommand() *cobra.Command {
	var from, reason string
	cmd := &cobra.Command{
		Use:   "retry LOT NODE",
		Short: "Let a stuck node go on",
		Long: `Lets a stuck node go on with the phase that it is stuck in, or with an earlier
one by --from. With --from reboot-rescue the server is installed from the start:
its disks are erased again.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			phase := run.Phase(from)
			if from != "" && !slices.Contains(run.Phases(), phase) {
				return refuse("use one of "+phaseList(), "there is no phase %q", from)
			}
			n, err := a.steer(cmd.Context(), args[0], args[1], run.UpdateRetry, run.RetryRequest{From: phase, Reason: reason})
			if err != nil {
				return err
			}
			if phase == "" {
				phase = n.Phase
			}
			return a.said(n, run.UpdateRetry, fmt.Sprintf("%s goes on with %s; follow it with `starter status %s --follow`", args[1], phase, args[0]))
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "phase to go on with: "+phaseList())
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(strings.Split(phaseList(), ", "), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func phaseList() string {
	var names []string
	for _, p := range run.Phases() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}
