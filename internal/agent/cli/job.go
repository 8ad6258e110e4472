package cli

import (
	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/job"
	"github.com/ironlot/ironlot/internal/fault"
)

// jobFlags are the flags of all job commands.
type jobFlags struct{ key, bootID string }

func (a *app) jobCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Start, follow and stop detached work (what the worker does)",
		Long: `A job goes on when the SSH session ends. There is one at a time on a machine;
"start" with the key of one that is there attaches to it. All answers are JSON.

  agent job start --key K --boot-id B KIND < request     KIND: disk-prep, stage, write
  agent job follow --key K --boot-id B                   a line a change, until it ends
  agent job status --key K --boot-id B
  agent job cancel --key K --boot-id B                   stops it in a safe state
  agent job claim --key K --boot-id B < claim            the machine for one run

The request is JSON behind a line ` + api.StdinMarker + `.
On another boot than B every command is refused.`,
	}
	cmd.AddCommand(
		a.jobVerb("start KIND", "Start a job, or attach to it", 1, a.start),
		a.jobVerb("status", "Tell how a job is doing", 0, a.status),
		a.jobVerb("follow", "Tell how a job is doing until it ends", 0, a.follow),
		a.jobVerb("cancel", "Stop a job in a safe state", 0, a.cancel),
		a.jobVerb("claim", "Take the machine for one run, whose ID is the key", 0, a.claim),
		a.runCommand(),
	)
	return cmd
}

// jobVerb makes a job command whose function gets the jobs of this boot.
func (a *app) jobVerb(use, short string, args int, do func(cmd *cobra.Command, jobs *job.Jobs, key string, args []string) error) *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(args), Annotations: answersJSON(),
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs, err := job.Open(a.host, f.bootID)
			if err != nil {
				return err
			}
			return do(cmd, jobs, f.key, args)
		},
	}
	cmd.Flags().StringVar(&f.key, "key", "", "key of the job: letters, digits, dots, dashes, underscores")
	cmd.Flags().StringVar(&f.bootID, "boot-id", "", "boot ID that is expected; on another boot nothing is done")
	for _, name := range []string{"key", "boot-id"} {
		_ = cmd.MarkFlagRequired(name) // fails for unknown flags only
	}
	return cmd
}

// runCommand is the job itself, started by start.
func (a *app) runCommand() *cobra.Command {
	cmd := a.jobVerb("run", "Do a job's work (started by start)", 0, func(cmd *cobra.Command, jobs *job.Jobs, key string, _ []string) error {
		if err := jobs.Run(cmd.Context(), key, work); err != nil {
			return err
		}
		return nil
	})
	cmd.Hidden, cmd.Annotations = true, nil
	return cmd
}

func (a *app) start(cmd *cobra.Command, jobs *job.Jobs, key string, args []string) error {
	var spec api.JobSpec
	if err := readRequest(cmd.InOrStdin(), &spec); err != nil {
		return err
	}
	if string(spec.Kind) != args[0] {
		return fault.Operator("ask for the kind that the request is of", "the request is for a job of kind %q, not %q", spec.Kind, args[0])
	}
	status, err := jobs.Start(cmd.Context(), key, spec)
	if err != nil {
		return err
	}
	return answer(cmd, status)
}

func (a *app) status(cmd *cobra.Command, jobs *job.Jobs, key string, _ []string) error {
	status, err := jobs.Status(cmd.Context(), key)
	if err != nil {
		return err
	}
	return answer(cmd, status)
}

func (a *app) cancel(cmd *cobra.Command, jobs *job.Jobs, key string, _ []string) error {
	status, err := jobs.Cancel(cmd.Context(), key)
	if err != nil {
		return err
	}
	return answer(cmd, status)
}

func (a *app) claim(cmd *cobra.Command, jobs *job.Jobs, key string, _ []string) error {
	var c api.Claim
	if err := readRequest(cmd.InOrStdin(), &c); err != nil {
		return err
	}
	if c.Fence.Run != key {
		return fault.Operator("claim it for the run that the key names", "the claim is for the run %q, not %q", c.Fence.Run, key)
	}
	claimed, err := jobs.Claim(cmd.Context(), c)
	if err != nil {
		return err
	}
	return answer(cmd, claimed)
}

func (a *app) follow(cmd *cobra.Command, jobs *job.Jobs, key string, _ []string) error {
	return jobs.Follow(cmd.Context(), key, func(status api.JobStatus) error {
		return printJSON(cmd.OutOrStdout(), status)
	})
}
