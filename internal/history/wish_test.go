package history

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

func payloads(t *testing.T, value any) *commonpb.Payloads {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(value)
	require.NoError(t, err)
	return p
}

// noon is when all of it happens.
func noon() time.Time { return time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC) }

func updated(t *testing.T, name string, request any) *historypb.HistoryEvent {
	t.Helper()
	return &historypb.HistoryEvent{
		EventTime: timestamppb.New(noon()), EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
			WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
				AcceptedRequest: &updatepb.Request{
					Meta:  &updatepb.Meta{Identity: "ada@desk"},
					Input: &updatepb.Input{Name: name, Args: payloads(t, request)},
				},
			},
		},
	}
}

func signalled(t *testing.T, name string, request any, from *commonpb.WorkflowExecution) *historypb.HistoryEvent {
	t.Helper()
	return &historypb.HistoryEvent{
		EventTime: timestamppb.New(noon()), EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				SignalName: name, Input: payloads(t, request), Identity: "ada@desk", ExternalWorkflowExecution: from,
			},
		},
	}
}

func started(t *testing.T, workflow string, in any) *historypb.HistoryEvent {
	t.Helper()
	return &historypb.HistoryEvent{
		EventTime: timestamppb.New(noon()), EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				WorkflowType: &commonpb.WorkflowType{Name: workflow}, Input: payloads(t, in),
			},
		},
	}
}

// TestEveryWishIsTold with its reason and who asked, and what workflows tell
// each other is nobody's wish.
func TestEveryWishIsTold(t *testing.T) {
	t.Parallel()
	lot := &commonpb.WorkflowExecution{WorkflowId: run.LotID("rack")}
	r, err := Read("provision/x", &historypb.History{Events: []*historypb.HistoryEvent{
		started(t, run.WorkflowNode, run.NodeInput{Node: run.Node{Name: "n", Lot: "rack"}}),
		updated(t, run.UpdateRetry, run.RetryRequest{From: run.Stage, Reason: "cable"}),
		updated(t, run.UpdateRetry, run.RetryRequest{Reason: "again"}),
		signalled(t, run.UpdateRetry, run.RetryRequest{Input: &run.NodeInput{}, AnotherDisk: true, Reason: "new disk"}, nil),
		signalled(t, run.SignalContinued, nil, lot),
		signalled(t, run.SignalContinued, nil, nil),
		updated(t, run.UpdateAbort, run.AbortRequest{Reason: "enough"}),
	}}, time.Time{})
	require.NoError(t, err)
	var told []string
	for _, s := range r.Steers {
		require.Equal(t, noon(), s.At)
		told = append(told, s.String())
	}
	require.Equal(t, []string{
		"a person's wish: retry: from stage: cable (by ada@desk)",
		"a person's wish: retry: again (by ada@desk)",
		"a person's wish: retry: with a corrected lot file, on another disk if it says so: new disk (by ada@desk)",
		"a person's wish: abort: enough (by ada@desk)",
	}, told)
}

// TestWhoAsked: a person, as far as a client has told one, and never the number
// of a process.
func TestWhoAsked(t *testing.T) {
	t.Parallel()
	for identity, want := range map[string]string{
		"ann@desk": "ann@desk", "temporal-cli:ann@desk": "temporal-cli:ann@desk", "": "",
		"32015@vm@": "someone on vm", "32015@vm@ironlot": "someone on vm", "32015@vm": "someone on vm", "32015@": "someone", "32015": "someone",
	} {
		e := updated(t, run.UpdateRetry, run.RetryRequest{})
		e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetMeta().Identity = identity
		s, ok := wishOf(e)
		require.True(t, ok)
		require.Equal(t, want, s.By, identity)
	}
	s, ok := wishOf(updated(t, run.UpdateAbort, run.AbortRequest{By: "bob@desk"}))
	require.True(t, ok)
	require.Equal(t, "bob@desk", s.By, "what the wish says itself counts")
}

// TestALotsPausesAreTold in every form of the report.
func TestALotsPausesAreTold(t *testing.T) {
	t.Parallel()
	id := run.LotID("rack")
	wishes, err := Wishes(id, &historypb.History{Events: []*historypb.HistoryEvent{
		started(t, run.WorkflowLot, run.LotInput{Lot: "rack"}),
		signalled(t, run.SignalNodeState, run.NodeState{Name: "n"}, &commonpb.WorkflowExecution{WorkflowId: "provision/x"}),
		updated(t, run.UpdateImage, run.LotImage{Node: "n"}),
		updated(t, run.UpdatePause, run.PauseRequest{Reason: "lunch"}),
		updated(t, run.UpdateResume, run.ResumeRequest{Reason: "back"}),
		updated(t, run.UpdateAdd, run.LotInput{Nodes: []run.NodeInput{{Node: run.Node{Name: "n2"}}}}),
		updated(t, run.UpdateAbort, run.AbortRequest{Node: "n3", Reason: "sold"}),
	}})
	require.NoError(t, err)
	require.Len(t, wishes, 4)
	l := Lot{Name: "rack", Steers: wishes, Paused: &run.Pause{Reason: "lunch", By: "ada@desk", At: noon()}, Nodes: []Report{*recorded(t, "ready.json")}}
	var md, html bytes.Buffer
	require.NoError(t, l.Markdown(&md))
	require.NoError(t, l.HTML(&html))
	for _, want := range []string{"pause: lunch (by ada@desk)", "resume: back (by ada@desk)", "add: n2 (by ada@desk)", "abort: n3: sold (by ada@desk)",
		"The lot is paused by ada@desk: lunch, since 2026-12-01 12:00:00", "2026-12-01 12:00:00"} {
		require.Contains(t, md.String(), want)
		require.Contains(t, html.String(), want)
	}

	_, err = Wishes(id, &historypb.History{Events: []*historypb.HistoryEvent{started(t, run.WorkflowNode, run.NodeInput{})}})
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}

// TestNothingIsToldTwice: the reason of an aborted node begins with its state.
func TestNothingIsToldTwice(t *testing.T) {
	t.Parallel()
	aborted := Report{Node: run.Node{Name: "n"}, State: run.Aborted, Problem: &run.Problem{Phase: run.Write, Message: "aborted in write by a person: enough"}}
	l := Lot{Name: "rack", Nodes: []Report{aborted}}
	var md, html bytes.Buffer
	require.NoError(t, l.Markdown(&md))
	require.NoError(t, l.HTML(&html))
	require.Contains(t, md.String(), "- **n** is aborted in write by a person: enough\n")
	require.Contains(t, html.String(), "</b> is aborted in write by a person: enough</div>")
	require.Equal(t, "stuck in write: no", run.Told(run.Stuck, run.Write, "no"))
	require.Equal(t, "refused: no", run.Told(run.Refused, "", "no"))
}
