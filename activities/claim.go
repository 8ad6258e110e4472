package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
)

// errTaken marks that somebody else works on the machine.
var errTaken = errors.New("machine taken")

// claim takes the rescue boot for this run: the machine starts no job of an
// older run any more. A job that such a run has left behind, because it was
// terminated, is stopped first. A job of anybody else is left alone.
func (a *Activities) claim(ctx context.Context, s *rescue.Session, in run.PhaseInput, bootID string) error {
	c := api.Claim{Fence: api.Fence{Run: in.Run, Pass: in.Pass}}
	got, err := s.Claim(ctx, bootID, c)
	if err != nil || got.Running == "" {
		return err
	}
	ended, err := a.leftBehind(ctx, in, got.Running)
	if err != nil {
		return err
	}
	if !ended {
		return taken(in, got.Running)
	}
	c.Evict = got.Running
	if got, err = s.Claim(ctx, bootID, c); err == nil && got.Running != "" {
		return taken(in, got.Running)
	}
	return err
}

func taken(in run.PhaseInput, job string) error {
	err := fault.Operator("find out who that is and let it end, or reboot the server, then retry",
		"somebody else works on server %s: its rescue system runs the job %q, which is of no run that this Temporal knows to have ended", in.Node.ServerName, job)
	return fmt.Errorf("%w: %w", errTaken, err)
}

// leftBehind reports whether a job is of an ended run on this server.
func (a *Activities) leftBehind(ctx context.Context, in run.PhaseInput, job string) (bool, error) {
	const uuid = 36 // letters of a run ID
	if len(job) <= uuid || job[uuid] != '-' || strings.Count(job[:uuid], "-") != 4 {
		return false, nil // by hand
	}
	ended, err := a.runEnded(ctx, in.Node.ID(), job[:uuid])
	if err != nil {
		return false, fault.Retry("Temporal does not say whether the run %s has ended: %w", job[:uuid], err)
	}
	return ended, nil
}
