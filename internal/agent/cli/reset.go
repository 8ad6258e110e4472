package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/agent/job"
	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
)

// farewell is how long the answer gets to leave the machine before it is
// reset, unless whoever asked closes standard input, which says that it is
// there. An answer that is late on a busy network costs whoever asked a minute
// of watching, so it gets more than it needs.
const farewell = 5 * time.Second

// farewellLook is how often the process that resets looks whether it is.
const farewellLook = 5 * time.Millisecond

// Reset answers that the machine is going to be reset.
type Reset struct {
	BootID string `json:"bootId"` // of the boot that ends
}

func (a *app) resetCommand() *cobra.Command {
	var bootID string
	var now bool
	cmd := &cobra.Command{
		Use: "reset", Short: "Reset the machine at once: sync, remount read-only, SysRq b", Args: cmdline.Words(0), Annotations: answersJSON(),
		Long: `Resets the machine through the kernel's SysRq, without shutting anything down.
Refused on another boot than --boot-id and while a job runs. It answers first
and happens when standard input is closed after the answer, at the latest five
seconds later, from a process of its own.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			jobs, err := job.Open(a.host, bootID)
			if err != nil {
				return err
			}
			if err := jobs.Idle(cmd.Context()); err != nil {
				return err
			}
			if now {
				return a.resetNow(cmd.Context())
			}
			if err := os.Remove(a.farewellSaid()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.Retry("the sign of an earlier reset cannot be removed: %w", err)
			}
			if err := a.host.Spawn(cmd.Context(), "reset", "--boot-id", bootID, "--now"); err != nil {
				return err
			}
			if err := answer(cmd, Reset{BootID: bootID}); err != nil {
				return err
			}
			a.sayFarewell(cmd.Context(), cmd.InOrStdin())
			return nil
		},
	}
	cmd.Flags().StringVar(&bootID, "boot-id", "", "boot ID that is expected; on another boot nothing is done")
	cmd.Flags().BoolVar(&now, "now", false, "do it in this process")
	_ = cmd.Flags().MarkHidden("now")
	_ = cmd.MarkFlagRequired("boot-id")
	return cmd
}

// farewellSaid is a file that is there when the answer has arrived.
func (a *app) farewellSaid() string { return filepath.Join(a.host.RAMDir(), "reset-answered") }

// sayFarewell waits until whoever asked has the answer, but not for long, and
// lets the machine go.
func (a *app) sayFarewell(ctx context.Context, in io.Reader) {
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(io.Discard, in) // it may hold what sudo did not ask for
	}()
	select {
	case <-heard:
	case <-ctx.Done(): // gone, with the answer or without
	case <-time.After(farewell):
		return
	}
	_ = os.WriteFile(a.farewellSaid(), nil, 0o600) // without it the machine goes when its time is over
}

// resetNow resets the machine when the answer has had its time.
func (a *app) resetNow(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < farewell; {
		if _, err := os.Stat(a.farewellSaid()); err == nil {
			break
		}
		if err := pause.For(ctx, farewellLook); err != nil {
			return err
		}
	}
	return a.host.Reset(ctx)
}
