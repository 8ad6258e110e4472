package throttle

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ironlot/ironlot/internal/run"
)

// callTimeout bounds one call to Temporal.
const callTimeout = 10 * time.Second

// Queue is the provider's task queue in Temporal, which keeps its limit.
type Queue struct {
	Service   workflowservice.WorkflowServiceClient
	Namespace string
}

// Read gives the limit that stands. Errors are Temporal's.
func (q Queue) Read(ctx context.Context) (Limit, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := q.Service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: q.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: run.ProviderTaskQueue},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportConfig: true,
	})
	return limitOf(d.GetConfig()), err
}

// Write sets a limit, or takes it away, and gives it as Temporal has it then.
// It goes before the rates that workers ask for (TaskQueueActivitiesPerSecond).
// Errors are Temporal's: Unimplemented from a server before 1.29.
func (q Queue) Write(ctx context.Context, l Limit) (Limit, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	update := &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{Reason: l.Reason}
	if l.Set {
		update.RateLimit = &taskqueuepb.RateLimit{RequestsPerSecond: float32(l.Rate)}
	}
	u, err := q.Service.UpdateTaskQueueConfig(ctx, &workflowservice.UpdateTaskQueueConfigRequest{
		Namespace: q.Namespace, TaskQueue: run.ProviderTaskQueue, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		UpdateQueueRateLimit: update,
	})
	return limitOf(u.GetConfig()), err
}

func limitOf(c *taskqueuepb.TaskQueueConfig) Limit {
	kept := c.GetQueueRateLimit()
	l := Limit{Set: kept.GetRateLimit() != nil, Rate: float64(kept.GetRateLimit().GetRequestsPerSecond()), Reason: kept.GetMetadata().GetReason()}
	if at := kept.GetMetadata().GetUpdateTime(); at != nil {
		l.Updated = at.AsTime()
	}
	return l
}
