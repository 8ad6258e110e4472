package track

import (
	"context"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

// pageSize is how many workflows one answer of Temporal lists.
const pageSize = 1000

// list calls each with the workflows that a visibility query finds, the
// newest first, until it says that it has enough.
func list(ctx context.Context, c client.Client, query string, each func(*workflowpb.WorkflowExecutionInfo) bool) error {
	var token []byte
	for {
		answer, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: pageSize, NextPageToken: token})
		if err != nil {
			return fmt.Errorf("the workflows cannot be listed: %w", err)
		}
		for _, info := range answer.GetExecutions() {
			if !each(info) {
				return nil
			}
		}
		if token = answer.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}

// nodeRuns lists the runs of nodes since a time (zero: all that Temporal
// keeps), the newest first.
func nodeRuns(ctx context.Context, c client.Client, since time.Time, each func(nodeRun)) error {
	query := fmt.Sprintf("WorkflowType = '%s'", run.WorkflowNode)
	if !since.IsZero() {
		query += fmt.Sprintf(" AND StartTime >= '%s'", since.UTC().Format(time.RFC3339Nano))
	}
	return list(ctx, c, query, func(info *workflowpb.WorkflowExecutionInfo) bool {
		each(nodeRunOf(info))
		return true
	})
}

// nodeRun is a node's run as a list shows it, without asking anybody.
type nodeRun struct {
	workflowID, runID string
	parentRunID       string // of the lot's workflow
	lot, node         string
	state             run.State
	phase             run.Phase
	started           time.Time
}

func nodeRunOf(info *workflowpb.WorkflowExecutionInfo) nodeRun {
	fields := info.GetSearchAttributes().GetIndexedFields()
	r := nodeRun{
		workflowID: info.GetExecution().GetWorkflowId(), runID: info.GetExecution().GetRunId(),
		parentRunID: info.GetParentExecution().GetRunId(),
		lot:         keyword(fields, run.AttrLot), node: keyword(fields, run.AttrNode),
		state: run.State(keyword(fields, run.AttrState)), phase: run.Phase(keyword(fields, run.AttrPhase)), started: info.GetStartTime().AsTime(),
	}
	open := info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
	switch {
	case open && r.state == "":
		r.state = run.Running
	case !open && !r.state.Final(): // it was ended from outside
		r.state = run.Aborted
	}
	return r
}

func keyword(fields map[string]*commonpb.Payload, name string) string {
	var value string
	if p, ok := fields[name]; ok {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &value)
	}
	return value
}

// lotName is the name of the lot that a workflow ID belongs to.
func lotName(workflowID string) string { return strings.TrimPrefix(workflowID, run.LotID("")) }
