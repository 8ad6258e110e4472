package activities

import (
	"context"
	"fmt"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
)

// stage proves that the raw image lies whole in the machine's RAM, with the
// digest that the lot file names, or else that its first node has staged.
func (a *Activities) stage(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	b.step("starting the download")
	result, err := a.runJob(ctx, b, in, api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: in.Node.Image}})
	if err != nil {
		return run.PhaseOutput{}, err
	}
	if result.Stage == nil {
		return run.PhaseOutput{}, fault.Retry("the stage job on server %s brought no facts", in.Node.ServerName)
	}
	facts := in.Facts
	facts.Staged = result.Stage
	if err := a.checkLotImage(ctx, in, facts.Staged.RawSHA256); err != nil {
		return run.PhaseOutput{}, err
	}
	return run.PhaseOutput{Facts: facts, Log: result.log, Summary: fmt.Sprintf("%s image, raw %s of which %s data, download sha256 %s",
		facts.Staged.Format, size.Text(facts.Staged.RawSize), size.Text(facts.Staged.DataSize), short(facts.Staged.DownloadSHA256))}, nil
}
