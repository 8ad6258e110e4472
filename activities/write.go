package activities

import (
	"context"
	"fmt"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// write proves that the system disk equals the staged image, read back past
// the cache.
func (a *Activities) write(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	staged := in.Facts.Staged
	if staged == nil || in.Facts.System == nil {
		return run.PhaseOutput{}, fault.Lost("no image is staged on server %s", in.Node.ServerName)
	}
	b.step("writing")
	result, err := a.runJob(ctx, b, in, api.JobSpec{Kind: api.Write, Write: &api.WriteSpec{
		System: *in.Facts.System, RawSHA256: staged.RawSHA256, RawSize: staged.RawSize,
	}})
	if err != nil {
		return run.PhaseOutput{}, err
	}
	if result.Write == nil {
		return run.PhaseOutput{}, fault.Retry("the write job on server %s brought no facts", in.Node.ServerName)
	}
	facts := in.Facts
	facts.Written = result.Write
	return run.PhaseOutput{Facts: facts, Log: result.log, Summary: fmt.Sprintf("%s written to %s at %.0f MB/s, %s read back and equal",
		mib(facts.Written.BytesWritten), facts.System.Label(), facts.Written.MBPerSecond, mib(facts.Written.BytesVerified))}, nil
}
