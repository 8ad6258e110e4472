package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/agent/job"
)

// farewell is how long the answer gets to leave the machine before it is
// reset.
const farewell = 300 * time.Millisecond

// Reset answers that the machine is going to be reset.
type Reset struct {
	BootID string `json:"bootId"` // of the boot that ends
}

func (a *app) resetCommand() *cobra.Command {
	var bootID string
	var now bool
	cmd := &cobra.Command{
		Use: "reset", Short: "Reset the machine at once: sync, remount read-only, SysRq b", Args: cobra.NoArgs, Annotations: answersJSON(),
		Long: `Resets the machine through the kernel's SysRq, without shutting anything down.
Refused on another boot than --boot-id and while a job runs. It answers first
and happens a moment later, from a process of its own.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			jobs, err := job.Open(a.host, bootID)
			if err != nil {
				return err
			}
			if err := jobs.Idle(cmd.Context()); err != nil {
				return err
			}
			if now {
				return a.resetNow(cmd)
			}
			if err := a.host.Spawn(cmd.Context(), "reset", "--boot-id", bootID, "--now"); err != nil {
				return err
			}
			return answer(cmd, Reset{BootID: bootID})
		},
	}
	cmd.Flags().StringVar(&bootID, "boot-id", "", "boot ID that is expected; on another boot nothing is done")
	cmd.Flags().BoolVar(&now, "now", false, "do it in this process")
	_ = cmd.Flags().MarkHidden("now")
	_ = cmd.MarkFlagRequired("boot-id")
	return cmd
}

func (a *app) resetNow(cmd *cobra.Command) error {
	select {
	case <-cmd.Context().Done():
		return cmd.Context().Err()
	case <-time.After(farewell):
		return a.host.Reset(cmd.Context())
	}
}
