package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/rescue/rescuetest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
)

// bench is a machine of the lab in its rescue system, the activities, and
// what a run knows of both.
type bench struct {
	*Activities
	machine *simulated.Machine
	in      run.PhaseInput
}

const rescuePassword = "a password of the bench"

// rented is a provider of one server.
type rented struct {
	provider.Provider
	server provider.Server
	err    error // of Describe
}

func (r rented) Describe(context.Context, string, string) (provider.Server, error) {
	return r.server, r.err
}

func (rented) RescuePassword(context.Context, string, string) (string, error) {
	return rescuePassword, nil
}

func newBench(t *testing.T, change ...func(*simulated.Options)) *bench {
	t.Helper()
	machine := rescuetest.Machine(t, change...)
	a := New(Config{Dialer: rescuetest.Dialer(t), Provider: rented{server: provider.Server{RescueUser: "rescue"}}})
	b := &bench{Activities: a, machine: machine, in: worker1(func(in *run.PhaseInput) {
		in.Key, in.Run, in.Pass = "key", "run", 1
		in.Node.Rescue.Port = 2222
		in.Facts.Address = machine.Address()
	})}
	b.boot(t)
	return b
}

// boot boots rescue, and makes it the boot that the run knows.
func (b *bench) boot(t *testing.T) {
	t.Helper()
	require.NoError(t, b.machine.PowerOn(hardware.BootRescue, hardware.Rescue{
		User: "rescue", Password: rescuePassword, AuthorizedKeys: b.dialer.PublicKeys(),
	}))
	require.NoError(t, b.machine.WaitState(testenv.Soon(t), simulated.InRescue))
	boots := b.machine.Boots()
	now := boots[len(boots)-1]
	b.in.Facts.Rescue = &run.RescueBoot{BootID: now.ID, HostKey: now.HostKey, User: "rescue"}
}

// session logs in beside the activities.
func (b *bench) session(t *testing.T) *rescue.Session {
	t.Helper()
	s, err := b.connectPinned(t.Context(), &beat{}, b.in)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// begin starts the first job of the run's pass, and waits until it has come to
// a step or to its end.
func (b *bench) begin(t *testing.T, spec api.JobSpec, step string) {
	t.Helper()
	s, key, bootID := b.session(t), jobKey(b.in, 1), b.in.Facts.Rescue.BootID
	_, err := s.StartJob(t.Context(), bootID, key, spec)
	require.NoError(t, err)
	ctx, there := context.WithCancel(t.Context())
	defer there()
	last, err := s.FollowJob(ctx, bootID, key, func(status api.JobStatus) {
		if status.Progress.Step == step {
			there()
		}
	})
	require.True(t, err == nil || last.Progress.Step == step, "it came to %v: %v", last.Progress, err)
}

// attempt runs an activity as a workflow does, with its own bound so far away,
// and gives the fault that a workflow gets.
func attempt(t *testing.T, a *Activities, do phaseFunc, in run.PhaseInput, bound time.Duration) (run.PhaseOutput, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	a.register(env, "phase", do)
	env.ExecuteWorkflow(func(ctx workflow.Context) (run.PhaseOutput, error) {
		var out run.PhaseOutput
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: run.AttemptGrace + bound,
			RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		}), "phase", in).Get(ctx, &out)
		return out, err
	})
	require.True(t, env.IsWorkflowCompleted())
	var out run.PhaseOutput
	if err := env.GetWorkflowError(); err != nil {
		return out, asFault(t, err)
	}
	require.NoError(t, env.GetWorkflowResult(&out))
	return out, nil
}

// asFault is what a workflow reads in an activity's error.
func asFault(t *testing.T, err error) *fault.Error {
	t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	var details run.ErrorDetails
	require.NoError(t, application.Details(&details))
	return &fault.Error{Class: fault.Class(application.Type()), Message: application.Message(), Remedy: details.Remedy, Tail: details.Tail}
}
