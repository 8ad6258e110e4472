package track

import (
	"context"
	"strconv"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

// Checking is how far the check of a lot has come.
type Checking struct {
	Done, Total int  // nodes
	Waits       bool // no worker has taken it
}

// LookAtCheck looks how far the check of a lot has come.
func LookAtCheck(ctx context.Context, c client.Client, lot string, nodes int) (Checking, error) {
	d, err := describe(ctx, c, run.CheckID(lot), "")
	if err != nil {
		return Checking{}, err
	}
	return checking(d, nodes), nil
}

// checking counts the nodes of the parts that are at work still: all others
// are done, once a worker has taken the workflow.
func checking(d *workflowservice.DescribeWorkflowExecutionResponse, nodes int) Checking {
	// The first task of a workflow follows its first two events.
	if len(d.GetPendingActivities()) == 0 && d.GetWorkflowExecutionInfo().GetHistoryLength() <= 3 {
		return Checking{Total: nodes, Waits: true}
	}
	parts := run.CheckParts(nodes)
	seen := Checking{Done: nodes, Total: nodes, Waits: len(d.GetPendingActivities()) > 0}
	for _, a := range d.GetPendingActivities() {
		seen.Waits = seen.Waits && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && a.GetAttempt() <= 1
		if i, err := strconv.Atoi(a.GetActivityId()); err == nil && i >= 0 && i < len(parts) {
			seen.Done -= parts[i].To - parts[i].From - done(a)
		}
	}
	seen.Waits = seen.Waits && seen.Done == 0
	return seen
}

// done is how many nodes of its part an activity has checked.
func done(a *workflow.PendingActivityInfo) int {
	var p run.Progress
	if a.GetHeartbeatDetails() == nil || converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &p) != nil {
		return 0
	}
	return int(p.Done)
}
