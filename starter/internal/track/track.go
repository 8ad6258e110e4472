// Package track looks at a lot's workflows from outside and puts together
// what a person wants to see. Most of it needs no worker: the lot's input,
// each node's search attributes and the heartbeat of its activity come from
// Temporal itself; only the finer story of a node is asked of its workflow.
package track

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/near"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/throttle"
)

// Lot is a lot at a moment.
type Lot struct {
	Name     string
	RunID    string
	Started  time.Time
	Open     bool   // its workflow runs
	Lab      bool   // the machines are simulated
	NoWorker bool   // no worker answered, so the story is incomplete
	Failing  string // why no worker gets the lot's workflow any further; empty: it goes on
	Held     string // why queued nodes do not start before a person has done something; empty: they do
	// Slowed says to what the calls of all workers to the provider are limited
	// while nodes wait for their turn; empty: not at all.
	Slowed string
	Paused *run.Pause // by whom and why; nil: it is not, or no worker answered
	Waits  []Wait     // why queued nodes are not started yet
	Nodes  []Node
	// Runs are the runs of its workflow, the first one first: it continues as
	// new when it gets long and when nodes are added.
	Runs []string
}

// Node is a node at a moment.
type Node struct {
	Node       run.Node      `json:"node"`
	WorkflowID string        `json:"workflowId"`
	RunID      string        `json:"runId,omitempty"` // the lot's, which need not be the server's latest; empty: not started
	State      run.State     `json:"state"`
	Phase      run.Phase     `json:"phase,omitempty"`
	Reason     string        `json:"reason,omitempty"`   // why it is stuck, aborted or refused
	Remedy     string        `json:"remedy,omitempty"`   // what to do about that, where no problem of the status says it
	Newer      *NewerRun     `json:"newer,omitempty"`    // a later run of another lot on the server, which has or had it since; nil: none
	Status     *run.Status   `json:"status,omitempty"`   // nil: not started, or no worker answered
	Progress   *run.Progress `json:"progress,omitempty"` // of the phase at work, nil: none told
	Aborting   bool          `json:"aborting,omitempty"` // its end is asked for and is not there yet
	Attempt    int32         `json:"attempt,omitempty"`  // of the phase at work, from 1
	Failure    string        `json:"failure,omitempty"`  // how the attempt before it ended
	Waits      string        `json:"waits,omitempty"`    // why it does not go on although nothing failed on the machine, as far as it is known
	Earlier    bool          `json:"earlier,omitempty"`  // an earlier run of the lot has left it so: the lot's run leaves it alone

	turn bool // it waits in the provider's task queue
}

// Settled reports that a node goes no further by itself.
func (n Node) Settled() bool { return n.State.Final() || n.State == run.Stuck && !n.Aborting }

// Settled reports that no node goes any further by itself.
func (l Lot) Settled() bool {
	for _, n := range l.Nodes {
		if !n.Settled() && (l.Held == "" || n.State != run.Queued) {
			return false
		}
	}
	return true
}

// Stuck gives the nodes that wait for a person, without those that are being
// aborted.
func (l Lot) Stuck() []Node {
	var stuck []Node
	for _, n := range l.Nodes {
		if n.State == run.Stuck && !n.Aborting {
			stuck = append(stuck, n)
		}
	}
	return stuck
}

// NotFoundError says that Temporal knows no lot of this name.
type NotFoundError struct {
	Lot  string
	Near string // a lot that may have been meant; empty: none
}

func (e *NotFoundError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("there is no lot %q; did you mean %s? `starter status` lists the lots", e.Lot, e.Near)
	}
	return fmt.Sprintf("there is no lot %q; `starter status` lists the lots", e.Lot)
}

// Tracker follows one lot. It asks the workflows only when their history has
// grown since the last look, and of a large lot not every node at each look.
type Tracker struct {
	client client.Client
	queue  *throttle.Queue // nil: not looked at
	lot    string
	runID  string   // of the lot's workflow, as of the last look
	runs   []string // that it has continued from
	inputs []run.NodeInput
	status run.LotStatus
	asked  memory
	nodes  []nodeMemory
	others []otherMemory // that the lot's run leaves alone
	look   int           // the how manyth it is
}

// memory is when a workflow was asked last, and how long its history was.
type memory struct {
	runID    string
	length   int64
	failedAt time.Time
}

type nodeMemory struct {
	memory
	status *run.Status
	seen   Node   // as it was at the last look at it
	told   bool   // a worker answered then
	look   int    // that look, 0: none yet
	sign   string // what the list showed of it then
}

const (
	queryTimeout = 5 * time.Second
	retryQueries = 10 * time.Second // after one that nobody answered
	lookers      = 8                // nodes looked at together
)

// New makes a tracker of a lot.
func New(c client.Client, lot string) *Tracker { return &Tracker{client: c, lot: lot} }

// WithQueue lets the tracker look at the limit of the provider's task queue
// too, while nodes wait in it.
func (t *Tracker) WithQueue(q throttle.Queue) *Tracker {
	t.queue = &q
	return t
}

// describe tells what Temporal knows of a workflow's run, the latest when
// runID is empty.
func describe(ctx context.Context, c client.Client, id, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := c.DescribeWorkflow(ctx, id, runID)
	if err != nil {
		return nil, err
	}
	return d.RawResponse, nil
}

// describeLot tells what Temporal knows of a lot's workflow; NotFoundError:
// nothing.
func describeLot(ctx context.Context, c client.Client, lot string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := describe(ctx, c, run.LotID(lot), "")
	if notFound := new(serviceerror.NotFound); errors.As(err, &notFound) {
		return nil, &NotFoundError{lot, nearLot(ctx, c, lot)}
	}
	if err != nil {
		return nil, fmt.Errorf("lot %s cannot be looked at: %w", lot, err)
	}
	return d, nil
}

// nearLot is the lot that is named most like one that is not there. It is a help:
// what cannot be listed is left out.
func nearLot(ctx context.Context, c client.Client, name string) string {
	seen := map[string]bool{}
	_ = list(ctx, c, fmt.Sprintf("WorkflowType = '%s'", run.WorkflowLot), func(info *workflowpb.WorkflowExecutionInfo) bool {
		seen[lotName(info.GetExecution().GetWorkflowId())] = true
		return true
	})
	return near.Name(name, slices.Sorted(maps.Keys(seen)))
}

// Look gives the lot as it is now.
func (t *Tracker) Look(ctx context.Context) (Lot, error) {
	d, err := describeLot(ctx, t.client, t.lot)
	if err != nil {
		return Lot{}, err
	}
	info := d.GetWorkflowExecutionInfo()
	if err := t.load(ctx, info.GetExecution().GetRunId()); err != nil {
		return Lot{}, err
	}
	lot := Lot{
		Name: t.lot, RunID: t.runID, Started: info.GetStartTime().AsTime(),
		Open:  info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Nodes: make([]Node, len(t.inputs)+len(t.others)), Runs: append(slices.Clone(t.runs), t.runID),
	}
	var status run.LotStatus
	fresh, answered := t.ask(ctx, d, &t.asked, &status)
	if fresh {
		t.status = status
	}
	lot.NoWorker = !answered
	if lot.Open {
		lot.Held, lot.Paused, lot.Failing = t.status.Held, t.status.Paused, t.failing(ctx, d)
	}
	if err := t.lookAtOthers(ctx); err != nil {
		return Lot{}, err
	}
	if err := t.refresh(ctx, lot); err != nil {
		return Lot{}, err
	}
	t.fill(&lot)
	if lot.Open && lot.Named().Settled() && t.missed() {
		// It is the last look for who follows the lot.
		if err := t.lookAt(ctx, all(len(t.nodes)), nil, lot.Open); err != nil {
			return Lot{}, err
		}
		t.fill(&lot)
	}
	t.explain(ctx, &lot)
	return lot, nil
}

// fill takes what is known of the nodes into a lot.
func (t *Tracker) fill(lot *Lot) {
	for i := range t.nodes {
		m := &t.nodes[i]
		lot.Nodes[i] = m.seen
		lot.Lab = lot.Lab || m.seen.Node.Lab
		lot.NoWorker = lot.NoWorker || !m.told
	}
	for i, m := range t.others {
		lot.Nodes[len(t.nodes)+i] = m.seen
		lot.NoWorker = lot.NoWorker || !m.told
	}
	if lot.Open {
		lot.wait(t.status)
	}
}

// missed reports whether nodes were left out of this look.
func (t *Tracker) missed() bool {
	return slices.ContainsFunc(t.nodes, func(m nodeMemory) bool { return m.look != t.look })
}

// load reads the lot's input from the first event of its history, once a
// run of the lot.
func (t *Tracker) load(ctx context.Context, runID string) error {
	if t.runID == runID {
		return nil
	}
	events := t.client.GetWorkflowHistory(ctx, run.LotID(t.lot), runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	if err != nil {
		return fmt.Errorf("the history of lot %s cannot be read: %w", t.lot, err)
	}
	var in run.LotInput
	payloads := first.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &in); err != nil {
		return fmt.Errorf("the input of lot %s cannot be read (was it started by another release?): %w", t.lot, err)
	}
	*t = Tracker{client: t.client, queue: t.queue, lot: t.lot, runID: runID, inputs: in.Whole(), nodes: make([]nodeMemory, len(in.Nodes))}
	for _, o := range in.LeftAlone() {
		t.others = append(t.others, otherMemory{Other: o})
	}
	if in.Progress != nil {
		t.runs = in.Progress.Runs
	}
	return nil
}

// mine reports whether a run of the lot's workflow is the one that is followed,
// or one that it has continued from.
func (t *Tracker) mine(runID string) bool { return runID == t.runID || slices.Contains(t.runs, runID) }

// ask gets a workflow's status into out: its result when it has completed,
// else its answer to the query. Nothing is asked, and nothing is fresh, while
// its history has not grown; answered is false when nobody answered. A query
// that no worker answered is put off for a while; a result needs no worker.
func (t *Tracker) ask(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse, m *memory, out any) (fresh, answered bool) {
	info := d.GetWorkflowExecutionInfo()
	id, runID := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	completed := info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	if !completed && m.runID == runID && !m.failedAt.IsZero() && time.Since(m.failedAt) < retryQueries {
		return false, false
	}
	if m.runID == runID && m.length == info.GetHistoryLength() && m.failedAt.IsZero() {
		return false, true
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var err error
	if completed {
		err = t.client.GetWorkflow(ctx, id, runID).Get(ctx, out)
	} else {
		var answer converter.EncodedValue
		if answer, err = t.client.QueryWorkflow(ctx, id, runID, run.QueryStatus); err == nil {
			err = answer.Get(out)
		}
	}
	*m = memory{runID: runID, length: info.GetHistoryLength()}
	if err != nil {
		m.failedAt = time.Now()
	}
	return err == nil, err == nil
}
