package track

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

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

// looksAtOnce bounds how many runs are looked at side by side.
const looksAtOnce = 16

// Holders finds the runs that hold any of the nodes' servers now, in the
// nodes' order.
func Holders(ctx context.Context, c client.Client, nodes []run.Node) ([]Holder, error) {
	found := make([]*Holder, len(nodes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(looksAtOnce)
	for i, n := range nodes {
		group.Go(func() error {
			var err error
			found[i], err = holder(ctx, c, n)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var held []Holder
	for _, h := range found {
		if h != nil {
			held = append(held, *h)
		}
	}
	return held, nil
}

// holder finds the run that holds a node's server now, nil when none does.
func holder(ctx context.Context, c client.Client, n run.Node) (*Holder, error) {
	d, err := describe(ctx, c, n.ID(), "")
	if notFound := new(serviceerror.NotFound); errors.As(err, &notFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the runs on server %s cannot be looked at: %w", n.ServerName, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, nil
	}
	return &Holder{
		Node: n.Name, WorkflowID: n.ID(), RunID: info.GetExecution().GetRunId(),
		Lot:     keyword(info.GetSearchAttributes().GetIndexedFields(), run.AttrLot),
		Started: info.GetStartTime().AsTime(),
	}, nil
}
