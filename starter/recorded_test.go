package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// keeper is a Temporal that keeps the events of some runs, and no others.
type keeper struct {
	client.Client
	kept map[string][]*historypb.HistoryEvent
	away error // of runs that it does not keep
}

func (k *keeper) GetWorkflowHistory(_ context.Context, _, runID string, _ bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	events, ok := k.kept[runID]
	if !ok {
		return &iterator{err: k.away}
	}
	return &iterator{events: events}
}

// iterator gives events, or an error.
type iterator struct {
	events []*historypb.HistoryEvent
	err    error
}

func (i *iterator) HasNext() bool { return len(i.events) > 0 || i.err != nil }

func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	if i.err != nil {
		return nil, i.err
	}
	next := i.events[0]
	i.events = i.events[1:]
	return next, nil
}

// pausedRun is the history of a run of a lot that somebody has paused.
func pausedRun(by string) []*historypb.HistoryEvent {
	return []*historypb.HistoryEvent{
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{WorkflowType: &commonpb.WorkflowType{Name: run.WorkflowLot}},
		}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: run.UpdatePause, Identity: by},
		}},
	}
}

// TestRunsThatAreNoLongerKept: the story of a lot says what of it is missing.
func TestRunsThatAreNoLongerKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kept []string
		want []string
	}{
		"all are kept":   {kept: []string{"first", "second", "third"}},
		"one is lost":    {kept: []string{"second", "third"}, want: []string{"of the 3 runs of the lot's workflow Temporal keeps 2: pauses of the others are missing here"}},
		"none is left":   {want: []string{"of the 3 runs of the lot's workflow Temporal keeps 0: pauses of the others are missing here"}},
		"the last alone": {kept: []string{"third"}, want: []string{"of the 3 runs of the lot's workflow Temporal keeps 1: pauses of the others are missing here"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &keeper{kept: map[string][]*historypb.HistoryEvent{}, away: serviceerror.NewNotFound("gone")}
			for _, runID := range c.kept {
				k.kept[runID] = pausedRun("ann in " + runID)
			}
			l := track.Lot{Name: "rack-1", Runs: []string{"first", "second", "third"}, Paused: &run.Pause{Reason: "lunch"}}
			var story history.Lot
			require.NoError(t, lotStory(t.Context(), k, l, &story))
			require.Equal(t, c.want, story.Notes)
			require.Equal(t, l.Paused, story.Paused)
			require.Len(t, story.Steers, len(c.kept))
			for i, runID := range c.kept {
				require.Equal(t, run.UpdatePause, story.Steers[i].What)
				require.Equal(t, "ann in "+runID, story.Steers[i].By)
			}
		})
	}
}

// TestAHistoryThatCannotBeRead is no run that is lost.
func TestAHistoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	k := &keeper{away: serviceerror.NewUnavailable("away")}
	err := lotStory(t.Context(), k, track.Lot{Name: "rack-1", Runs: []string{"first"}}, &history.Lot{})
	require.ErrorContains(t, err, "the history of lot rack-1 cannot be read")
	require.Equal(t, exitUnreachable, exitCode(err))
}
