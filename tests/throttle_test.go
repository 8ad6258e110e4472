package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/run"
)

// TestThrottledByTheProvider: one worker is asked once to slow down, and
// Temporal hands out the provider's work at half the rate, to whichever
// worker, which both know.
func TestThrottledByTheProvider(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	require.NoError(t, s.fleet.API().AddFault(scwapi.Fault{Kind: scwapi.RateLimit, Times: 1, RetryAfter: time.Second}))
	s.startWorker()
	s.startWorker()
	r := s.startNode(s.inputs(noDigest)[0])
	var limit *workflowservice.DescribeTaskQueueResponse_EffectiveRateLimit
	s.eventually("the provider's queue is slowed down", waitLong, func() bool {
		d, err := s.client.WorkflowService().DescribeTaskQueue(t.Context(), &workflowservice.DescribeTaskQueueRequest{
			Namespace: s.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: run.ProviderTaskQueue}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		})
		limit = d.GetEffectiveRateLimit()
		return err == nil && limit.GetRateLimitSource() == enumspb.RATE_LIMIT_SOURCE_API
	})
	require.InDelta(t, s.workerConfig().Rate/2, limit.GetRequestsPerSecond(), 1e-3)
	require.Equal(t, run.Ready, s.result(r).State)
	s.eventually("both workers say so", waitLong, func() bool {
		return strings.Count(s.log.String(), "provider calls are slowed down") == 2
	})
	s.eventually("it passes", waitLong, func() bool {
		return strings.Contains(s.log.String(), "provider calls may be faster again")
	})
}
