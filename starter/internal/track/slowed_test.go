package track

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/throttle"
)

// limited is a Temporal that limits the provider's task queue.
type limited struct {
	workflowservice.WorkflowServiceClient
	perSecond float32
	err       error
	asked     int
}

func (l *limited) DescribeTaskQueue(context.Context, *workflowservice.DescribeTaskQueueRequest, ...grpc.CallOption) (*workflowservice.DescribeTaskQueueResponse, error) {
	l.asked++
	return &workflowservice.DescribeTaskQueueResponse{Config: &taskqueuepb.TaskQueueConfig{QueueRateLimit: &taskqueuepb.RateLimitConfig{
		RateLimit: &taskqueuepb.RateLimit{RequestsPerSecond: l.perSecond},
		Metadata:  &taskqueuepb.ConfigMetadata{Reason: "ironlot: the provider answers 429"},
	}}}, l.err
}

func pending(queue string, state enumspb.PendingActivityState) *workflowservice.DescribeWorkflowExecutionResponse {
	return &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: []*workflowpb.PendingActivityInfo{{
		ActivityType: &commonpb.ActivityType{Name: string(run.Preflight)}, State: state, Attempt: 1,
		ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}},
	}}}
}

// TestWhyANodeWaits: a node whose phase Temporal has not handed out says so,
// one at work or in another queue does not, and nobody is asked for nothing.
func TestWhyANodeWaits(t *testing.T) {
	t.Parallel()
	lot := func(all ...*workflowservice.DescribeWorkflowExecutionResponse) Lot {
		l := Lot{}
		for _, d := range all {
			n := Node{State: run.Running, Phase: run.Preflight}
			n.activity(d)
			l.Nodes = append(l.Nodes, n)
		}
		return l
	}
	waiting := pending(run.ProviderTaskQueue, enumspb.PENDING_ACTIVITY_STATE_SCHEDULED)
	atWork := pending(run.ProviderTaskQueue, enumspb.PENDING_ACTIVITY_STATE_STARTED)
	elsewhere := pending(run.TaskQueue, enumspb.PENDING_ACTIVITY_STATE_SCHEDULED)

	temporal := &limited{perSecond: 0.5}
	tracker := New(nil, "lot").WithQueue(throttle.Queue{Service: temporal})
	l := lot(waiting, atWork, elsewhere)
	tracker.explain(t.Context(), &l)
	require.Equal(t, "waits for its turn to ask the provider, which is limited to 0.5 phases a second over all workers (the provider answers 429)", l.Nodes[0].Waits)
	require.Contains(t, l.Slowed, "429")
	require.Empty(t, l.Nodes[1].Waits)
	require.Empty(t, l.Nodes[2].Waits)

	l = lot(atWork, elsewhere)
	tracker.explain(t.Context(), &l)
	require.Empty(t, l.Slowed)
	require.Equal(t, 1, temporal.asked)

	temporal.err = errors.New("older than 1.29")
	l = lot(waiting)
	tracker.explain(t.Context(), &l)
	require.Empty(t, l.Nodes[0].Waits)
}
