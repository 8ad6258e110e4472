package workflows

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// script answers the phases' activities: a phase fails with its errors in
// turn, then succeeds.
type script struct {
	mu      sync.Mutex // an attempt that was given up may still end beside the next
	errs    map[run.Phase][]error
	block   run.Phase // this phase waits until it is cancelled
	calls   []run.Phase
	inputs  map[run.Phase][]run.PhaseInput
	stopped []string // keys of jobs stopped after an abort
}

func (s *script) phase(p run.Phase) func(context.Context, run.PhaseInput) (run.PhaseOutput, error) {
	return func(ctx context.Context, in run.PhaseInput) (run.PhaseOutput, error) {
		err, blocked := s.begin(p, in)
		if blocked {
			for ctx.Err() == nil {
				activity.RecordHeartbeat(ctx)
				time.Sleep(time.Millisecond)
			}
			return run.PhaseOutput{}, ctx.Err()
		}
		if err != nil {
			return run.PhaseOutput{}, err
		}
		return run.PhaseOutput{Facts: prove(p, in.Facts), Summary: "proved " + string(p)}, nil
	}
}

// begin notes that a phase was begun, and gives what the script has for it.
func (s *script) begin(p run.Phase, in run.PhaseInput) (err error, blocked bool) { //nolint:revive // the error is data here
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, p)
	s.inputs[p] = append(s.inputs[p], in)
	if s.block == p {
		return nil, true
	}
	if errs := s.errs[p]; len(errs) > 0 {
		err, s.errs[p] = errs[0], errs[1:]
	}
	return err, false
}

// prove adds the facts that the workflow itself looks at.
func prove(p run.Phase, f run.Facts) run.Facts {
	switch p {
	case run.WaitSSH:
		f.Rescue = &run.RescueBoot{BootID: "boot-" + string(rune('a'+len(f.SeenBoots)))}
		f.System = &run.Disk{Serial: "S1"}
	case run.DiskPrep:
		f.Prepared = &run.Prepared{}
	case run.Write:
		f.Written = &run.Written{Serial: "S1"}
	case run.SysrqReset:
		f.Reset = &run.Reset{}
	}
	return f
}

func classed(class fault.Class, msg string) error {
	return temporal.NewApplicationErrorWithOptions(msg, string(class), temporal.ApplicationErrorOptions{
		NonRetryable: class != fault.Transient,
		Details:      []any{run.ErrorDetails{Remedy: "do this", Tail: "last line"}},
	})
}

func newEnv(t *testing.T, s *script) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	s.inputs = map[run.Phase][]run.PhaseInput{}
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	patient(env)
	env.RegisterWorkflow(ProvisionNode)
	env.RegisterWorkflow(ProvisionLot)
	for _, p := range run.Phases() {
		env.RegisterActivityWithOptions(s.phase(p), activity.RegisterOptions{Name: string(p)})
	}
	env.RegisterActivityWithOptions(func(_ context.Context, in run.PhaseInput) error {
		s.stopped = append(s.stopped, in.Key)
		return nil
	}, activity.RegisterOptions{Name: run.ActivityStopJob})
	return env
}

func input(name string) run.NodeInput {
	return run.NodeInput{
		Node:   run.Node{Lot: "lot", Name: name, Provider: "scaleway", ServerID: "id-" + name, ServerName: "em-" + name},
		Sealed: run.Sealed{Config: "sealed config", Talosconfig: "sealed talosconfig"},
	}
}

func result(t *testing.T, env *testsuite.TestWorkflowEnvironment) run.Status {
	t.Helper()
	var s run.Status
	completed(t, env, &s)
	return s
}

// completed takes the result of a workflow that has ended well.
func completed(t *testing.T, env *testsuite.TestWorkflowEnvironment, result any) {
	t.Helper()
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(result))
}
