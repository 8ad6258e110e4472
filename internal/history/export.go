package history

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
)

// Fetch reads the whole history of a workflow's run; an empty run ID is its
// latest. Errors are Temporal's own.
func Fetch(ctx context.Context, c client.Client, workflowID, runID string) (*historypb.History, error) {
	h := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}

// Export gives a run's history as `temporal workflow show -o json` does, for
// Parse to read.
func Export(ctx context.Context, c client.Client, workflowID, runID string) ([]byte, error) {
	h, err := Fetch(ctx, c, workflowID, runID)
	if err != nil {
		return nil, err
	}
	return temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(h)
}
