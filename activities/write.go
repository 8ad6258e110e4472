package activities

import (
	"context"
	"fmt"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
)

// write proves that the system disk equals the staged image, read back past
// the cache.
func (a *Activities) write(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	staged := in.Facts.Staged
	if staged == nil || in.Facts.System == nil {
		return run.PhaseOutput{}, fault.Lost("no image is staged on server %s", in.Node.ServerName)
	}
	spec := &api.WriteSpec{System: *in.Facts.System, DataSHA256: staged.DataSHA256, RawSize: staged.RawSize, Verify: in.Node.Image.Verify}
	if in.Node.Delivery == run.ByState {
		s, err := a.open(in)
		if err != nil {
			return run.PhaseOutput{}, err
		}
		spec.State = &api.StateSpec{Config: s.config.Bytes}
	}
	b.step("writing")
	result, err := a.runJob(ctx, b, in, api.JobSpec{Kind: api.Write, Write: spec})
	if err != nil {
		return run.PhaseOutput{}, err
	}
	if result.Write == nil {
		return run.PhaseOutput{}, fault.Retry("the write job on server %s brought no facts", in.Node.ServerName)
	}
	if (result.Write.State != nil) != (spec.State != nil) {
		return run.PhaseOutput{}, fault.Operator("use a worker and an agent of one version, then `starter retry LOT NODE --from stage`",
			"the agent on server %s did not do with STATE what it was told", in.Node.ServerName)
	}
	facts := in.Facts
	facts.Written = result.Write
	summary := fmt.Sprintf("%s written to %s at %s, %s read back and equal",
		size.Text(facts.Written.BytesWritten), facts.System.Label(), size.Rate(facts.Written.MBPerSecond*1e6), size.Text(facts.Written.BytesVerified))
	if facts.Written.State != nil {
		summary += ", with the machine config in STATE"
	}
	return run.PhaseOutput{Facts: facts, Log: result.log, Summary: summary}, nil
}
