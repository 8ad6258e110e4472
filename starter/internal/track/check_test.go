package track

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

func TestHowFarACheckHasCome(t *testing.T) {
	t.Parallel()
	const scheduled, started = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, enumspb.PENDING_ACTIVITY_STATE_STARTED
	part := func(id string, state enumspb.PendingActivityState, done int64) *workflowpb.PendingActivityInfo {
		details, err := converter.GetDefaultDataConverter().ToPayloads(run.Progress{Step: "checking nodes", Done: done})
		require.NoError(t, err)
		return &workflowpb.PendingActivityInfo{ActivityId: id, State: state, HeartbeatDetails: details}
	}
	for name, c := range map[string]struct {
		length  int64
		pending []*workflowpb.PendingActivityInfo
		want    Checking
	}{
		"no worker at all":          {2, nil, Checking{0, 60, true}},
		"none for the provider":     {8, []*workflowpb.PendingActivityInfo{part("0", scheduled, 0), part("1", scheduled, 0), part("2", scheduled, 0)}, Checking{0, 60, true}},
		"at work":                   {9, []*workflowpb.PendingActivityInfo{part("0", started, 5), part("1", scheduled, 0), part("2", started, 0)}, Checking{5, 60, false}},
		"a part is done":            {12, []*workflowpb.PendingActivityInfo{part("0", started, 25), part("2", started, 1)}, Checking{51, 60, false}},
		"all are":                   {20, nil, Checking{60, 60, false}},
		"of another release's name": {9, []*workflowpb.PendingActivityInfo{part("x", started, 5)}, Checking{60, 60, false}},
	} {
		d := describeAs(enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, c.length)
		d.PendingActivities = c.pending
		require.Equal(t, c.want, checking(d, 60), name)
	}
}
