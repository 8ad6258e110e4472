package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/version"
)

// versionCommand answers as the starter's does.
func versionCommand() *cobra.Command {
	outputs := []string{"text", "json"}
	output := outputs[0]
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print which build this is",
		Args:  refusing(cmdline.Words(0)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			build := version.Of("worker")
			switch {
			case !slices.Contains(outputs, output):
				return fault.Operator("use text or json", "the output %q is not known", output)
			case output == "json":
				return json.NewEncoder(cmd.OutOrStdout()).Encode(build)
			default:
				_, err := fmt.Fprintln(cmd.OutOrStdout(), build)
				return err
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// refusing tells of arguments that are wrong where the right ones are told.
func refusing(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error { return cmdline.See(cmd, args(cmd, words)) }
}
