package track

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

// Summary is a lot in a list.
type Summary struct {
	Lot     string    `json:"lot"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Open    bool      `json:"open"`
	Result  string    `json:"result"` // running, completed, terminated, …
}

// Lots lists the lots that Temporal remembers, the newest first, at most
// limit.
func Lots(ctx context.Context, c client.Client, limit int) ([]Summary, error) {
	answer, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s'", run.WorkflowLot), PageSize: int32(min(limit, 1000)),
	})
	if err != nil {
		return nil, fmt.Errorf("the lots cannot be listed: %w", err)
	}
	var lots []Summary
	for _, info := range answer.GetExecutions() {
		s := Summary{
			Lot:     strings.TrimPrefix(info.GetExecution().GetWorkflowId(), run.LotID("")),
			Started: info.GetStartTime().AsTime(),
			Open:    info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
			Result:  strings.ToLower(info.GetStatus().String()),
		}
		if info.GetCloseTime() != nil {
			s.Ended = info.GetCloseTime().AsTime()
		}
		lots = append(lots, s)
	}
	return lots, nil
}

// Holder is a run that holds a server now.
type Holder struct {
	Node       string // that wants the server
	WorkflowID string
	RunID      string
	Lot        string // that the run belongs to
	Started    time.Time
}

// Holders finds the runs that hold any of the nodes' servers now.
func Holders(ctx context.Context, c client.Client, nodes []run.Node) ([]Holder, error) {
	var held []Holder
	for _, n := range nodes {
		d, err := describe(ctx, c, n.ID())
		if notFound := new(serviceerror.NotFound); errors.As(err, &notFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the runs on server %s cannot be looked at: %w", n.ServerName, err)
		}
		info := d.GetWorkflowExecutionInfo()
		if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			continue
		}
		held = append(held, Holder{
			Node: n.Name, WorkflowID: n.ID(), RunID: info.GetExecution().GetRunId(),
			Lot:     keyword(info.GetSearchAttributes().GetIndexedFields(), run.AttrLot),
			Started: info.GetStartTime().AsTime(),
		})
	}
	return held, nil
}

func keyword(fields map[string]*commonpb.Payload, name string) string {
	var value string
	if p, ok := fields[name]; ok {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &value)
	}
	return value
}
