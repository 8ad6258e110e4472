package worker

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/run"
)

// lotImage tells a lot what a node has staged, and gives the image of the lot:
// that one, when it is the first. A run whose lot is not at work, also because
// a later run of the lot has taken its place, has nothing to be compared with.
func (c Config) lotImage(ctx context.Context, lot, lotRun string, claim run.LotImage) (run.LotImage, error) {
	handle, err := c.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.LotID(lot), FirstExecutionRunID: lotRun,
		UpdateName: run.UpdateImage, Args: []any{claim}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	var image run.LotImage
	if err == nil {
		err = handle.Get(ctx, &image)
	}
	var refused *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return image, nil
	case errors.As(err, &refused) && refused.Type() == run.ImageKnown:
		return image, refused.Details(&image)
	case errors.As(err, &gone):
		return claim, nil
	default:
		return run.LotImage{}, err
	}
}
