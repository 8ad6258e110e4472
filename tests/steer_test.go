package tests

import (
	"strings"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/run"
)

// wrongDigest is the digest of no image.
var wrongDigest = strings.Repeat("ab", 32) //nolint:gochecknoglobals // a constant

func startOptions(in run.NodeInput) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: in.Node.ID(), TaskQueue: run.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true}
}

// abort ends a run as a person does.
func (s *stack) abort(id string) {
	s.t.Helper()
	s.update(id, run.UpdateAbort, run.AbortRequest{Reason: "test"})
}

func (s *stack) update(id, name string, request any) {
	s.t.Helper()
	h, err := s.client.UpdateWorkflow(s.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	require.NoError(s.t, err)
	require.NoError(s.t, h.Get(s.t.Context(), nil))
}
