package worker

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

// sealed reads what a run's workflow was started with from the first event of
// its history, and that event alone.
func (c Config) sealed(ctx context.Context, workflowID, runID string) (run.Sealed, error) {
	answer, err := c.Temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.Namespace, MaximumPageSize: 1,
		Execution: &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
	})
	if err != nil {
		return run.Sealed{}, err
	}
	events := answer.GetHistory().GetEvents()
	if len(events) == 0 || events[0].GetWorkflowExecutionStartedEventAttributes() == nil {
		return run.Sealed{}, errors.New("its history does not begin with its start")
	}
	var in run.NodeInput
	err = converter.GetDefaultDataConverter().FromPayloads(events[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), &in)
	return in.Sealed, err
}
