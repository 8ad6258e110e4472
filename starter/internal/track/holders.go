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
	As         string // how that lot calls the node
	Started    time.Time
}

// looksAtOnce bounds how many runs are looked at side by side.
const looksAtOnce = 16

// LastRuns are the last runs on the servers of some nodes.
type LastRuns struct {
	Held  []Holder        // those that hold their server now, in the nodes' order
	Ready map[string]bool // nodes whose server's last run ended Ready
}

// LookAtServers looks for the last run on each node's server.
func LookAtServers(ctx context.Context, c client.Client, nodes []run.Node) (LastRuns, error) {
	held, ready := make([]*Holder, len(nodes)), make([]bool, len(nodes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(looksAtOnce)
	for i, n := range nodes {
		group.Go(func() error {
			var err error
			held[i], ready[i], err = lastRun(ctx, c, n)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return LastRuns{}, err
	}
	last := LastRuns{Ready: map[string]bool{}}
	for i, h := range held {
		if h != nil {
			last.Held = append(last.Held, *h)
		}
		if ready[i] {
			last.Ready[nodes[i].Name] = true
		}
	}
	return last, nil
}

// lastRun finds the run that holds a node's server now, nil when none does, and
// whether the one that is over ended Ready.
func lastRun(ctx context.Context, c client.Client, n run.Node) (*Holder, bool, error) {
	d, err := describe(ctx, c, n.ID(), "")
	if notFound := new(serviceerror.NotFound); errors.As(err, &notFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("the runs on server %s cannot be looked at: %w", n.ServerName, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, nodeRunOf(info).state == run.Ready, nil
	}
	return &Holder{
		Node: n.Name, WorkflowID: n.ID(), RunID: info.GetExecution().GetRunId(),
		Lot:     keyword(info.GetSearchAttributes().GetIndexedFields(), run.AttrLot),
		As:      keyword(info.GetSearchAttributes().GetIndexedFields(), run.AttrNode),
		Started: info.GetStartTime().AsTime(),
	}, false, nil
}
