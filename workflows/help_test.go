package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/ironlot/ironlot/internal/run"
)

type converterValues = converter.EncodedValues

func queryNode(t *testing.T, env *testsuite.TestWorkflowEnvironment) run.Status {
	t.Helper()
	value, err := env.QueryWorkflow(run.QueryStatus)
	require.NoError(t, err)
	var s run.Status
	require.NoError(t, value.Get(&s))
	return s
}

// patient lets a busy computer take its time.
func patient(env *testsuite.TestWorkflowEnvironment) {
	env.SetTestTimeout(2 * time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
}

func signalAbort(env *testsuite.TestWorkflowEnvironment) {
	env.SignalWorkflow(run.UpdateAbort, run.AbortRequest{})
}

// update sends an update; refusal is a part of the expected refusal, empty
// when it must be accepted.
func update(t *testing.T, env *testsuite.TestWorkflowEnvironment, name string, request any, refusal string) {
	t.Helper()
	callback := accepted(t)
	if refusal != "" {
		callback = &testsuite.TestUpdateCallback{
			OnAccept:   func() { t.Errorf("update %s %+v was accepted", name, request) },
			OnReject:   func(err error) { require.ErrorContains(t, err, refusal) },
			OnComplete: func(any, error) {},
		}
	}
	env.UpdateWorkflow(name, "", callback, request)
}

func accepted(t *testing.T) *testsuite.TestUpdateCallback {
	t.Helper()
	return &testsuite.TestUpdateCallback{
		OnAccept:   func() {},
		OnReject:   func(err error) { t.Errorf("update refused: %v", err) },
		OnComplete: func(_ any, err error) { require.NoError(t, err) },
	}
}
