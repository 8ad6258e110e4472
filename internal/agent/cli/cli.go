// Package cli is the agent's command line, for the worker (JSON answers) and
// for a person on the machine.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/prep"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/stage"
	"github.com/ironlot/ironlot/internal/agent/write"
	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/fault"
)

// Run runs one command of the agent on a host and returns its exit status: 0
// for success and 1 for an error, which is in the answer of a command that
// answers in JSON and on stderr otherwise.
func Run(ctx context.Context, h host.Host, version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{host: h, version: version}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if inJSON(cmd) {
		_ = printJSON(stdout, api.Answer[struct{}]{Error: api.ErrorFrom(classified(err))}) // the exit status tells as well
		return 1
	}
	fmt.Fprintf(stderr, "agent: %v\n", err)
	if e, ok := fault.As(err); ok && e.Tail != "" {
		fmt.Fprintf(stderr, "%s\n", e.Tail)
	}
	return 1
}

// classified gives errors of the command line the class that they have:
// they do not pass by themselves.
func classified(err error) error {
	if _, ok := fault.As(err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Operator("see `agent --help`", "%w", err)
}

// app is one call of the agent.
type app struct {
	host    host.Host
	version string
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "agent",
		Short: "Prepare, stage and write this machine's disks for Talos Linux",
		Long: `The Ironlot agent runs in the rescue system of a rented machine. The worker
drives it over SSH through "agent job"; a person can run each step by hand:

  agent inspect -o text                         what this machine is and holds
  agent disk-prep --system SERIAL --dry-run     what would be erased, and how
  agent disk-prep --system SERIAL --yes         erase to a blank disk
  agent stage --url URL                         put the image into RAM
  agent write --system SERIAL --yes             write it, and read it back
  agent reset --boot-id "$(cat /proc/sys/kernel/random/boot_id)"

Disks are named by serial, WWN or a name below /dev/disk/by-id, never by sda:
kernel names may change at every boot. Nothing is erased without --yes.

Exit status: 0 success, 1 an error.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.Args, root.RunE = cmdline.Commands, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(cmdline.Flag)
	root.AddCommand(a.versionCommand(), a.inspectCommand(), a.jobCommand(), a.resetCommand(),
		a.prepCommand(), a.stageCommand(), a.writeCommand())
	return root
}

// work does what a job asks for.
func work(ctx context.Context, h host.Host, spec api.JobSpec, rep report.Reporter) (api.JobResult, error) {
	switch {
	case spec.DiskPrep != nil:
		done, err := prep.Run(ctx, h, *spec.DiskPrep, rep)
		return api.JobResult{DiskPrep: &done}, err
	case spec.Stage != nil:
		done, err := stage.Run(ctx, h, *spec.Stage, rep)
		return api.JobResult{Stage: &done}, err
	case spec.Write != nil:
		done, err := write.Run(ctx, h, *spec.Write, rep)
		return api.JobResult{Write: &done}, err
	}
	return api.JobResult{}, fault.Operator("give a kind and its request", "the job asks for nothing")
}

// outputFlag adds -o with the format that the command has without it.
func outputFlag(cmd *cobra.Command, format string) {
	output := cmd.Flags().StringP("output", "o", format, "output format: text or json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *output != "text" && *output != "json" {
			return fault.Operator("use text or json", "%q is no output format", *output)
		}
		return nil
	}
}

// speaksJSON marks the commands that answer in JSON and in nothing else.
const speaksJSON = "json"

// inJSON reports whether a command answers in JSON.
func inJSON(cmd *cobra.Command) bool {
	if cmd == nil {
		return false
	}
	if flag := cmd.Flags().Lookup("output"); flag != nil {
		return flag.Value.String() == "json"
	}
	return cmd.Annotations[speaksJSON] != ""
}

func answersJSON() map[string]string { return map[string]string{speaksJSON: "always"} }

// answer prints the one line that a command answers with.
func answer[T any](cmd *cobra.Command, value T) error {
	return printJSON(cmd.OutOrStdout(), api.Answer[T]{Value: &value})
}

func printJSON(w io.Writer, value any) error {
	if err := json.NewEncoder(w).Encode(value); err != nil {
		return fault.Retry("the answer cannot be written: %w", err)
	}
	return nil
}
