package track

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/run"
)

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
