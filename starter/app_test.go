package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/workflows"
)

// variables are a test's whole environment.
type variables map[string]string

func (v variables) Environ() []string {
	var out []string
	for key, value := range v {
		out = append(out, key+"="+value)
	}
	return out
}

func (v variables) LookupEnv(key string) (string, bool) {
	value, ok := v[key]
	return value, ok
}

// console is the starter with its output caught. Nobody sits at it.
type console struct {
	*app
	t        *testing.T
	vars     variables
	out, err *testenv.Log
}

func newConsole(t *testing.T, address string) *console {
	t.Helper()
	c := &console{t: t, out: &testenv.Log{}, err: &testenv.Log{}, vars: variables{
		"IRONLOT_HOME": filepath.Join(t.TempDir(), "home"),
		"HOME":         t.TempDir(),
		"SUDO_USER":    "ann",
		// No configuration file of this machine may matter.
		"TEMPORAL_CONFIG_FILE": filepath.Join(t.TempDir(), "none.toml"),
	}}
	if address != "" {
		c.vars["TEMPORAL_ADDRESS"] = address
	}
	c.app = &app{
		stdin: strings.NewReader(""), stdout: c.out, stderr: c.err, env: c.vars,
		terminal: func() (int, int, bool) { return 0, 0, false },
		errWidth: func() int { return 0 },
	}
	return c
}

// again is another console at the same place.
func (c *console) again() *console {
	next := &console{t: c.t, out: &testenv.Log{}, err: &testenv.Log{}, vars: c.vars}
	next.app = &app{
		stdin: strings.NewReader(""), stdout: next.out, stderr: next.err, env: c.vars, terminal: c.terminal, errWidth: c.errWidth,
	}
	return next
}

// types answers the question at a terminal.
func (c *console) types(answer string) *console {
	c.stdin, c.stdinTerminal = strings.NewReader(answer), true
	return c
}

// starter runs a command. A test that fails tells what each command said.
func (c *console) starter(args ...string) int {
	code := c.run(context.Background(), args)
	c.t.Logf("starter %s: exit code %d\n%s", strings.Join(args, " "), code, c.err)
	return code
}

// cluster is a real Temporal with the real workflows; the activities are the
// test's.
type cluster struct {
	address string
	client  client.Client
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	binary := temporalBinary(t)
	log := logging.Temporal(zap.NewNop())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	server, err := devserver.Start(ctx, devserver.Options{
		Binary: binary, Database: filepath.Join(dir, "temporal.db"), LogFile: filepath.Join(dir, "temporal.log"),
		Port: testenv.Port(), UIPort: testenv.Port(), Logger: log, Settings: deletesAtOnce(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	c, err := client.DialContext(ctx, client.Options{HostPort: server.Address(), Logger: log})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &cluster{address: server.Address(), client: c}
}

// deletesAtOnce are settings for a server that deletes a run soon after its end.
// It does not before it has noted, every 30 s by default, that the end is dealt
// with (ErrDependencyTaskNotCompleted in Temporal's history service).
func deletesAtOnce() []string {
	return []string{`history.transferProcessorUpdateAckInterval="500ms"`, `history.visibilityProcessorUpdateAckInterval="500ms"`}
}

// temporalBinary finds Temporal's dev server, or skips the test.
func temporalBinary(t *testing.T) string {
	t.Helper()
	const built = "../bin/temporal"
	if _, err := os.Stat(built); err == nil {
		return built
	}
	binary, err := devserver.Find()
	if err != nil {
		testenv.Lacks(t, err.Error())
	}
	return binary
}

// work starts a worker whose phases do what the test says. A nil error lets
// a phase pass.
func (c *cluster) work(t *testing.T, phase func(ctx context.Context, in run.PhaseInput, p run.Phase) error) {
	t.Helper()
	for _, queue := range []string{run.TaskQueue, run.ProviderTaskQueue} {
		w := worker.New(c.client, queue, worker.Options{MaxHeartbeatThrottleInterval: 50 * time.Millisecond, DefaultHeartbeatThrottleInterval: 50 * time.Millisecond})
		if queue == run.TaskQueue {
			w.RegisterWorkflowWithOptions(workflows.ProvisionLot, workflow.RegisterOptions{Name: run.WorkflowLot})
			w.RegisterWorkflowWithOptions(workflows.ProvisionNode, workflow.RegisterOptions{Name: run.WorkflowNode})
			w.RegisterActivityWithOptions(func(context.Context, run.PhaseInput) error { return nil }, activity.RegisterOptions{Name: run.ActivityStopJob})
		}
		for _, p := range run.Phases() {
			w.RegisterActivityWithOptions(func(ctx context.Context, in run.PhaseInput) (run.PhaseOutput, error) {
				activity.RecordHeartbeat(ctx, progress())
				err := phase(ctx, in, p)
				return run.PhaseOutput{Facts: proved(in.Facts, in.Node.Lot, p), Summary: "proved"}, err
			}, activity.RegisterOptions{Name: string(p)})
		}
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
}

// progress is what every phase of the tests tells.
func progress() run.Progress {
	return run.Progress{Step: "simulated step", Done: 1e9, Total: 4e9, Rate: 2e8}
}

// beatUntilDone keeps a phase at work until it is cancelled, which only a
// heartbeat brings.
func beatUntilDone(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			activity.RecordHeartbeat(ctx, progress())
		}
	}
}

// needsOperator fails a phase as an activity does that needs a person.
func needsOperator(message, remedy string) error {
	return sdk.NewApplicationErrorWithOptions(message, string(fault.NeedsOperator), sdk.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{run.ErrorDetails{Remedy: remedy}},
	})
}

// eventually waits for something that happens elsewhere.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 30*time.Second, 20*time.Millisecond, what)
}
