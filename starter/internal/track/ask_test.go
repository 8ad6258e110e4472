package track

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

// noWorker is a Temporal without a worker: queries are not answered, results
// are there.
type noWorker struct {
	client.Client
	queries int
}

func (c *noWorker) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	c.queries++
	return nil, errors.New("no worker")
}

func (c *noWorker) GetWorkflow(context.Context, string, string) client.WorkflowRun { return result{} }

type result struct{ client.WorkflowRun }

func (result) Get(_ context.Context, out any) error {
	*out.(*run.Status) = run.Status{State: run.Ready}
	return nil
}

func describeAs(status enumspb.WorkflowExecutionStatus, length int64) *workflowservice.DescribeWorkflowExecutionResponse {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "w", RunId: "r"}, Status: status, HistoryLength: length,
	}}
}

// TestAResultNeedsNoWorker: a query that nobody answered puts off the next
// query, not the result of a run that has completed since.
func TestAResultNeedsNoWorker(t *testing.T) {
	t.Parallel()
	c := &noWorker{}
	tracker := &Tracker{client: c}
	var m memory
	var status run.Status
	for range 2 {
		fresh, answered := tracker.ask(t.Context(), describeAs(enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, 10), &m, &status)
		require.False(t, fresh || answered)
	}
	require.Equal(t, 1, c.queries, "the second query is put off")
	require.WithinDuration(t, time.Now(), m.failedAt, time.Minute)

	fresh, answered := tracker.ask(t.Context(), describeAs(enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, 20), &m, &status)
	require.True(t, fresh && answered)
	require.Equal(t, run.Ready, status.State)
}
