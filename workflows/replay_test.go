package workflows

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/run"
)

// TestReplayRecordedHistories replays runs that were recorded from this and
// earlier builds: a change of workflow code that would break running lots
// fails here. `make histories` records new ones.
func TestReplayRecordedHistories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/histories/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files, "there are no recorded histories")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			replayer.RegisterWorkflowWithOptions(ProvisionNode, workflow.RegisterOptions{Name: run.WorkflowNode})
			replayer.RegisterWorkflowWithOptions(ProvisionLot, workflow.RegisterOptions{Name: run.WorkflowLot})
			replayer.RegisterWorkflowWithOptions(CheckLot, workflow.RegisterOptions{Name: run.WorkflowCheck})
			require.NoError(t, replayer.ReplayWorkflowHistoryFromJSONFile(nil, file))
		})
	}
}
