package history

import (
	"cmp"
	"strconv"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// Wishes reads from the history of a run of ProvisionLot what people wished of
// the lot.
func Wishes(workflowID string, h *historypb.History) ([]Steer, error) {
	start, err := startOf(workflowID, h)
	if err != nil {
		return nil, err
	}
	if got := start.GetWorkflowType().GetName(); got != run.WorkflowLot {
		return nil, fault.Operator("name a lot", "%s is a run of %s, not of %s", workflowID, got, run.WorkflowLot)
	}
	var all []Steer
	for _, e := range h.GetEvents() {
		if wish, ok := wishOf(e); ok {
			all = append(all, wish)
		}
	}
	return all, nil
}

// wishOf is the person's wish that an event holds, if it holds one: the
// workflows of a lot and of its nodes steer each other too.
func wishOf(e *historypb.HistoryEvent) (Steer, bool) {
	s := Steer{At: e.GetEventTime().AsTime()}
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		r := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
		s.What, s.By = r.GetInput().GetName(), asker(r.GetMeta().GetIdentity())
		return s.with(r.GetInput().GetArgs())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		if a.GetExternalWorkflowExecution() != nil {
			return s, false
		}
		s.What, s.By = a.GetSignalName(), asker(a.GetIdentity())
		return s.with(a.GetInput())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		a := e.GetWorkflowExecutionCancelRequestedEventAttributes()
		s.What, s.By, s.Text = "cancel", asker(a.GetIdentity()), a.GetCause()
		if lot := a.GetExternalWorkflowExecution(); lot != nil {
			s.By, s.Text = "", cmp.Or(s.Text, "passed on by the workflow "+lot.GetWorkflowId())
		}
		return s, true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		a := e.GetWorkflowExecutionTerminatedEventAttributes()
		s.What, s.By, s.Text = "terminate", asker(a.GetIdentity()), a.GetReason()
		return s, true
	default:
		return s, false
	}
}

// asker is who asked, for people, by the identity that Temporal was told. A
// client that says nothing of itself is told as PROCESS@HOST, which names nobody.
func asker(identity string) string {
	process, host, _ := strings.Cut(identity, "@")
	if _, err := strconv.Atoi(process); err != nil {
		return identity
	}
	host, _, _ = strings.Cut(host, "@") // the SDK adds a task queue, or none
	return strings.TrimSuffix("someone on "+host, " on ")
}

// with adds what a wish says, in words. Its name tells whether it is one.
func (s Steer) with(args *commonpb.Payloads) (Steer, bool) {
	switch s.What {
	case run.UpdateRetry:
		s.Text = retryText(args)
	case run.UpdateAbort:
		var in run.AbortRequest
		_ = decode(args, &in)
		s.By, s.Text = cmp.Or(in.By, s.By), said(in.Node, in.Reason)
	case run.UpdatePause:
		var in run.PauseRequest
		_ = decode(args, &in)
		s.By, s.Text = cmp.Or(in.By, s.By), in.Reason
	case run.UpdateResume:
		var in run.ResumeRequest
		_ = decode(args, &in)
		s.Text = in.Reason
	case run.UpdateAdd:
		var in run.LotInput
		_ = decode(args, &in)
		var names []string
		for _, n := range in.Whole() {
			names = append(names, n.Node.Name)
		}
		s.Text = clip.Names(names)
	default:
		return s, false
	}
	return s, true
}

// retryText is what a retry asks for, and why.
func retryText(args *commonpb.Payloads) string {
	var in run.RetryRequest
	_ = decode(args, &in)
	var what []string
	if in.From != "" {
		what = append(what, "from "+string(in.From))
	}
	if in.Input != nil {
		what = append(what, "with a corrected lot file")
	}
	if in.AnotherDisk {
		what = append(what, "on another disk if it says so")
	}
	return said(strings.Join(what, ", "), in.Reason)
}

// said joins what is wished with why, as far as there is any.
func said(what, why string) string {
	if what == "" || why == "" {
		return what + why
	}
	return what + ": " + why
}

// String tells the wish in one line, for people.
func (s Steer) String() string {
	text := "a person's wish: " + said(s.What, line(s.Text))
	if s.By != "" {
		text += " (by " + line(s.By) + ")"
	}
	return text
}
