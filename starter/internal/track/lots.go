package track

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

// Summary is a lot in a list, once for each time that it was started.
type Summary struct {
	Lot     string    `json:"lot"`
	State   run.State `json:"state"` // stuck: some node is; else running, ready or aborted
	Nodes   int       `json:"nodes"`
	Others  int       `json:"others,omitempty"` // nodes of the lot that were left alone, besides
	Counts  Counts    `json:"counts"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"` // of the lot's workflow
	// Stuck is the node that has been stuck for the longest run, nil: none is.
	Stuck *StuckNode `json:"stuck,omitempty"`
	// Paused is why the lot starts no further node, nil: it is not paused, or
	// no worker told.
	Paused *run.Pause `json:"paused,omitempty"`
	// Waits are why queued nodes are not started yet, as far as a worker told.
	Waits []Wait `json:"waits,omitempty"`
	// Newer are the later runs of other lots on the servers of nodes that have
	// ended: what is told of these nodes holds no longer.
	Newer      []NewerRun `json:"newer,omitempty"`
	WorkflowID string     `json:"workflowId"`
	RunID      string     `json:"runId"`
	Simulated  bool       `json:"simulated,omitempty"`

	open bool
	seen map[string]bool // workflow IDs of the nodes
	told run.LotStatus   // the lot's own word, without nodes where nobody gave it
}

// Counts are nodes by state.
type Counts struct {
	Ready   int `json:"ready"`
	Running int `json:"running"`
	Queued  int `json:"queued"`
	Stuck   int `json:"stuck"`
	Aborted int `json:"aborted"` // or ended from outside
	Refused int `json:"refused"` // never started
}

// StuckNode is a node that waits for a person.
type StuckNode struct {
	Node       string `json:"node"`
	Reason     string `json:"reason,omitempty"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
}

// The keys of a lot workflow's memo, which tells what a list could not know.
const (
	MemoNodes     = "nodes"     // how many the lot has
	MemoOthers    = "others"    // how many nodes of the lot are left alone, besides
	MemoSimulated = "simulated" // the machines are the lab's
)

// Open reports whether the lot's workflow runs.
func (s Summary) Open() bool { return s.open }

// Glance tells what Temporal itself knows of a lot, without its nodes.
func Glance(ctx context.Context, c client.Client, lot string) (Summary, error) {
	d, err := describeLot(ctx, c, lot)
	if err != nil {
		return Summary{}, err
	}
	return *summaryOf(d.GetWorkflowExecutionInfo()), nil
}

// Lots lists the lots that Temporal remembers, the newest first, at most
// limit. It needs no worker. Reasons are left for those who want them.
func Lots(ctx context.Context, c client.Client, limit int) ([]Summary, error) {
	var lots []*Summary
	byRun := map[string]*Summary{}
	latest := map[string]*Summary{} // by lot
	err := list(ctx, c, fmt.Sprintf("WorkflowType = '%s'", run.WorkflowLot), func(info *workflowpb.WorkflowExecutionInfo) bool {
		name, runID := lotName(info.GetExecution().GetWorkflowId()), info.GetExecution().GetRunId()
		if s := latest[name]; s != nil && info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			byRun[runID], s.Started = s, info.GetStartTime().AsTime()
			return true
		}
		if len(lots) == limit {
			return false
		}
		s := summaryOf(info)
		lots, byRun[runID], latest[name] = append(lots, s), s, s
		return true
	})
	if err != nil || len(lots) == 0 {
		return nil, err
	}
	oldest := lots[0].Started
	for _, s := range lots {
		if s.Started.Before(oldest) {
			oldest = s.Started
		}
	}
	later := newest{}
	if err := nodeRuns(ctx, c, oldest, func(r nodeRun) {
		if s := byRun[r.parentRunID]; s != nil {
			s.add(r, later.of(r.workflowID, r.lot))
		}
		later.see(r)
	}); err != nil {
		return nil, err
	}
	tell(ctx, c, lots)
	out := make([]Summary, len(lots))
	for i, s := range lots {
		s.conclude()
		out[i] = *s
	}
	return out, nil
}

func summaryOf(info *workflowpb.WorkflowExecutionInfo) *Summary {
	s := &Summary{
		Lot: lotName(info.GetExecution().GetWorkflowId()), Started: info.GetStartTime().AsTime(),
		WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(),
		open: info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, seen: map[string]bool{},
	}
	if info.GetCloseTime() != nil {
		s.Ended = info.GetCloseTime().AsTime()
	}
	memo, decode := info.GetMemo().GetFields(), converter.GetDefaultDataConverter()
	if p, ok := memo[MemoNodes]; ok {
		_ = decode.FromPayload(p, &s.Nodes)
	}
	if p, ok := memo[MemoOthers]; ok {
		_ = decode.FromPayload(p, &s.Others)
	}
	if p, ok := memo[MemoSimulated]; ok {
		_ = decode.FromPayload(p, &s.Simulated)
	}
	return s
}

// add counts a node's run, and a newer one of another lot on its server (nil:
// none); the newest run of a node comes first.
func (s *Summary) add(r nodeRun, newer *NewerRun) {
	if s.seen[r.workflowID] {
		return
	}
	s.seen[r.workflowID] = true
	if newer != nil {
		s.Newer = append(s.Newer, *newer)
	}
	switch r.state {
	case run.Ready:
		s.Counts.Ready++
	case run.Stuck:
		s.Counts.Stuck++
		// Runs come the newest first, so the last one is the oldest.
		s.Stuck = &StuckNode{Node: r.node, WorkflowID: r.workflowID, RunID: r.runID}
	case run.Aborted:
		s.Counts.Aborted++
	default:
		s.Counts.Running++
	}
}

// conclude finds the lot's state, and counts the nodes without a run.
func (s *Summary) conclude() {
	s.Nodes = max(s.Nodes, len(s.seen), len(s.told.Nodes))
	rest := s.Nodes - len(s.seen)
	for _, n := range s.told.Nodes { // without a run
		switch {
		case s.seen[n.WorkflowID]:
		case n.State == run.Aborted:
			s.Counts.Aborted, rest = s.Counts.Aborted+1, rest-1
		case n.State == run.Refused:
			s.Counts.Refused, rest = s.Counts.Refused+1, rest-1
		}
	}
	if s.open {
		s.Counts.Queued = rest
		s.Paused, s.Waits = s.told.Paused, waitsOf(s.told)
	} else {
		s.Counts.Refused += rest
	}
	switch {
	case s.Counts.Stuck > 0:
		s.State = run.Stuck
	case s.open || s.Counts.Running > 0:
		s.State = run.Running
	case s.Counts.Ready == s.Nodes && s.Nodes > 0:
		s.State = run.Ready
	default:
		s.State = run.Aborted
	}
}
