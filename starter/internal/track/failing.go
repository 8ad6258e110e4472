package track

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ironlot/ironlot/internal/clip"
)

const (
	// failsOften is at which attempt a workflow task counts as failing again
	// and again: one that a worker lost is tried a second time at once.
	failsOften = 3
	// lastEvents are the events in which its failure is looked for.
	lastEvents = 10
	// maxFailure bounds how much of it is told, in bytes.
	maxFailure = 300
)

// failing says that Temporal cannot get a workflow any further, and why:
// workers take its workflow task and fail with it each time. Empty: it can.
func (t *Tracker) failing(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) string {
	attempt := d.GetPendingWorkflowTask().GetAttempt()
	if attempt < failsOften {
		return ""
	}
	text := fmt.Sprintf("its workflow task fails again and again (attempt %d)", attempt)
	if why := t.taskFailure(ctx, d.GetWorkflowExecutionInfo().GetExecution()); why != "" {
		text += ": " + clip.End(why, maxFailure)
	}
	return text + "; read the log of the worker, which must be of the release that started the lot"
}

// taskFailure is what the history says of the last workflow task that failed;
// empty when it cannot be read or says nothing, which is no reason to show less
// of everything else.
func (t *Tracker) taskFailure(ctx context.Context, execution *commonpb.WorkflowExecution) string {
	if t.queue == nil {
		return ""
	}
	answer, err := t.client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: t.queue.Namespace, Execution: execution, MaximumPageSize: lastEvents,
	})
	if err != nil {
		return ""
	}
	for _, event := range answer.GetHistory().GetEvents() {
		switch event.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
			return event.GetWorkflowTaskFailedEventAttributes().GetFailure().GetMessage()
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			return "no worker answered it in time"
		default:
		}
	}
	return ""
}
