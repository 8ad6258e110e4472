package history

import (
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// exportIt is how a person comes by a history that can be read.
const exportIt = "export a node's run with `temporal workflow show --workflow-id ID -o json > FILE`, or download it in the Web UI"

// Parse reads a history as `temporal workflow show -o json` and the Web UI
// export it. Errors are NeedsOperator.
func Parse(data []byte) (*historypb.History, error) {
	var h historypb.History
	if err := (temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &h); err != nil {
		// The decoder's own words name its package and no remedy.
		return nil, fault.Operator(exportIt, "this is no whole workflow history in JSON") //nolint:nilerr // see above
	}
	return &h, nil
}

// Read tells the story of a run of ProvisionNode from its events: of an open
// one until now, or until its last event when now is zero, as for a history
// that was exported some time ago.
func Read(workflowID string, h *historypb.History, now time.Time) (*Report, error) {
	start, err := startOf(workflowID, h)
	if err != nil {
		return nil, err
	}
	events := h.GetEvents()
	if got := start.GetWorkflowType().GetName(); got != run.WorkflowNode {
		return nil, fault.Operator("name a node's run", "%s is a run of %s, not of %s", workflowID, got, run.WorkflowNode)
	}
	r := &reader{passes: map[int64]int{}, numbers: map[run.Phase]int{}, report: Report{
		WorkflowID: workflowID, RunID: start.GetOriginalExecutionRunId(), State: run.Running,
		Started: events[0].GetEventTime().AsTime(), Events: len(events), Bytes: proto.Size(h),
	}}
	var in run.NodeInput
	if err := decode(start.GetInput(), &in); err != nil {
		return nil, fmt.Errorf("the input of %s cannot be read: %w", workflowID, err)
	}
	r.report.Node = in.Node
	for _, e := range events {
		r.report.Read = e.GetEventTime().AsTime()
		r.event(e)
	}
	// The clocks of Temporal and of this computer may differ.
	if r.report.Ended.IsZero() && now.After(r.report.Read) {
		r.report.Read = now
	}
	r.account()
	return &r.report, nil
}

// startOf is a history's first event, without which it tells nothing.
func startOf(workflowID string, h *historypb.History) (*historypb.WorkflowExecutionStartedEventAttributes, error) {
	if events := h.GetEvents(); len(events) > 0 && events[0].GetWorkflowExecutionStartedEventAttributes() != nil {
		return events[0].GetWorkflowExecutionStartedEventAttributes(), nil
	}
	return nil, fault.Operator(exportIt, "the history of %s does not begin with the workflow's start", workflowID)
}

// reader puts a report together, event by event.
type reader struct {
	report  Report
	passes  map[int64]int // index of a pass by the ID of its scheduled event
	numbers map[run.Phase]int
}

func (r *reader) event(e *historypb.HistoryEvent) {
	at := e.GetEventTime().AsTime()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		r.scheduled(e.GetEventId(), at, e.GetActivityTaskScheduledEventAttributes())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		if p := r.pass(a.GetScheduledEventId()); p != nil {
			p.Began, p.Attempts, p.Worker = at, a.GetAttempt(), a.GetIdentity()
			p.Earlier = a.GetLastFailure().GetMessage()
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		if p := r.pass(a.GetScheduledEventId()); p != nil {
			r.proved(p, at, a.GetResult())
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		r.failed(a.GetScheduledEventId(), at, a.GetFailure())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		r.failed(a.GetScheduledEventId(), at, a.GetFailure())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		if p := r.pass(e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId()); p != nil {
			p.Ended, p.Outcome = at, Canceled
		}
	default:
		if wish, ok := wishOf(e); ok {
			r.report.Steers = append(r.report.Steers, wish)
		}
		r.ended(e, at)
	}
}

func (r *reader) pass(scheduled int64) *Pass {
	if i, ok := r.passes[scheduled]; ok {
		return &r.report.Passes[i]
	}
	return nil
}

func (r *reader) scheduled(id int64, at time.Time, a *historypb.ActivityTaskScheduledEventAttributes) {
	phase := run.Phase(a.GetActivityType().GetName())
	r.numbers[phase]++
	r.passes[id] = len(r.report.Passes)
	r.report.Passes = append(r.report.Passes, Pass{Phase: phase, Number: r.numbers[phase], Asked: at, Outcome: Open})
	var in run.PhaseInput
	if decode(a.GetInput(), &in) == nil {
		r.report.Facts = in.Facts
	}
}

func (r *reader) proved(p *Pass, at time.Time, result *commonpb.Payloads) {
	p.Ended, p.Outcome = at, Proved
	var out run.PhaseOutput
	if decode(result, &out) != nil {
		return
	}
	p.Summary, p.Log = out.Summary, out.Log
	if string(p.Phase) != run.ActivityStopJob {
		r.report.Facts = r.report.Facts.With(out.Facts)
	}
}

func (r *reader) failed(scheduled int64, at time.Time, f *failurepb.Failure) {
	p := r.pass(scheduled)
	if p == nil {
		return
	}
	p.Ended, p.Outcome, p.Class, p.Message = at, Failed, string(fault.Transient), f.GetMessage()
	// A time-out holds the failure of the last attempt as its cause.
	for ; f != nil; f = f.GetCause() {
		app := f.GetApplicationFailureInfo()
		if app == nil {
			continue
		}
		p.Message = f.GetMessage()
		if class := fault.Class(app.GetType()); class.Known() {
			p.Class = string(class)
		}
		var details run.ErrorDetails
		if decode(app.GetDetails(), &details) == nil {
			p.Remedy, p.Log = run.Remedy(details.Remedy, r.report.Node), details.Tail
		}
		return
	}
}

// ended notes how the run ended.
func (r *reader) ended(e *historypb.HistoryEvent, at time.Time) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		var s run.Status
		r.report.Ended, r.report.State = at, run.Ready
		if decode(e.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &s) == nil && s.State != "" {
			r.report.State, r.report.Problem = s.State, s.Problem
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		r.report.Ended, r.report.State = at, run.Aborted
	default:
	}
}

// account finds the state, the decisive problem and the lost time.
func (r *reader) account() {
	rep := &r.report
	for i, p := range rep.Passes {
		if !p.Began.IsZero() && p.Attempts <= 1 {
			rep.Lost.Workers += p.Began.Sub(p.Asked)
		}
		if p.Outcome == Proved && p.Attempts > 1 {
			rep.Lost.Retried += p.Began.Sub(p.Asked)
		}
		if p.Outcome != Failed {
			continue
		}
		rep.Lost.Failed += p.Took(rep.Read)
		next := rep.Read
		if i+1 < len(rep.Passes) {
			next = rep.Passes[i+1].Asked
		}
		// The run itself goes on within a moment; what is longer is a person.
		if gap := next.Sub(p.Ended); gap > time.Second {
			rep.Lost.Person += gap
		}
	}
	if n := len(rep.Passes); n > 0 && rep.Problem == nil && rep.Passes[n-1].Outcome == Failed {
		last := rep.Passes[n-1]
		rep.Problem = &run.Problem{Phase: last.Phase, Class: last.Class, Message: last.Message, Remedy: last.Remedy,
			Tail: last.Log, Erased: rep.Facts.Erased(last.Phase)}
		if rep.Ended.IsZero() {
			rep.State = run.Stuck
		}
	}
}

func decode(p *commonpb.Payloads, into any) error {
	return converter.GetDefaultDataConverter().FromPayloads(p, into)
}
