package activities

import (
	"context"
	"fmt"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// diskPrep proves that nothing holds the handed-over disks any more, that
// nothing old can be found on them, and that each holds a blank GPT.
func (a *Activities) diskPrep(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	if in.Facts.System == nil {
		return run.PhaseOutput{}, fault.Lost("no system disk of server %s has been chosen yet", in.Node.ServerName)
	}
	b.step("releasing and clearing disks")
	spec := prepSpec(in.Facts)
	result, err := a.runJob(ctx, b, in, api.JobSpec{Kind: api.DiskPrep, DiskPrep: &spec})
	if err != nil {
		return run.PhaseOutput{}, err
	}
	if result.DiskPrep == nil {
		return run.PhaseOutput{}, fault.Retry("the disk-prep job on server %s brought no facts", in.Node.ServerName)
	}
	facts := in.Facts
	facts.Prepared = result.DiskPrep
	return run.PhaseOutput{Facts: facts, Log: result.log, Summary: fmt.Sprintf("%d holders released, %d signatures cleared, %d disks blank",
		len(facts.Prepared.Released), len(facts.Prepared.Cleared), len(facts.Prepared.Blanked))}, nil
}

// prepSpec names the disks that the run has chosen.
func prepSpec(f run.Facts) api.DiskPrepSpec {
	return api.DiskPrepSpec{System: *f.System, Secondary: f.Secondary}
}
