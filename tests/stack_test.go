// Package tests runs the whole of Ironlot end to end: the real Temporal
// server, the real Scaleway SDK over HTTP, SSH over TCP and the Talos gRPC
// API. Only the machines below are the lab's.
package tests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/provider/scaleway"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/internal/worker"
	"github.com/ironlot/ironlot/tests/rig"
)

// shared is what all tests of a process use: one Temporal server (each test
// has a namespace of its own) and one build of the agent.
type shared struct {
	server *devserver.Server
	agents string
	stacks atomic.Int32
	why    string // not empty: the tests cannot run
}

var common shared //nolint:gochecknoglobals // set up once by TestMain

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ironlot-tests-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := common.setUp(dir); err != nil {
			fmt.Fprintln(os.Stderr, "end-to-end tests cannot be set up:", err)
			return 1
		}
		if common.server != nil {
			defer common.server.Stop() //nolint:errcheck // its database goes too
		}
		return m.Run()
	}())
}

// setUp builds the agent and starts Temporal. Without the temporal binary
// the tests skip, except in CI, where that is an error.
func (s *shared) setUp(dir string) error {
	if err := os.Chdir(".."); err != nil { // the module's root, where bin/ is
		return err
	}
	temporal, err := devserver.Find()
	if err != nil {
		s.why = err.Error()
		return nil //nolint:nilerr // each test says that it cannot run
	}
	s.agents = dir
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "agent-linux-amd64"), "./agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the agent does not build: %w\n%s", err, out)
	}
	s.server, err = rig.Temporal(temporal, dir, "temporal")
	return err
}

// stack is a lab with a namespace and workers.
type stack struct {
	t         *testing.T
	fleet     *lab.Fleet
	client    client.Client
	namespace string
	identity  *age.X25519Identity
	log       *testenv.Log // of all workers
}

// newStack starts a lab of its own for a test. It has no worker yet.
func newStack(t *testing.T, o lab.Options) *stack {
	t.Helper()
	if common.why != "" {
		testenv.Lacks(t, common.why)
	}
	n := common.stacks.Add(1)
	if o.Lot == "" {
		o.Lot = fmt.Sprintf("lot%d", n)
	}
	o.Dir, o.Base, o.Seed = t.TempDir(), fmt.Sprintf("127.100.%d.0", n), uint64(n)
	if o.Speed == 0 {
		o.Speed = 200
	}
	s := &stack{t: t, namespace: fmt.Sprintf("test-%d", n), log: &testenv.Log{}}
	var err error
	s.fleet, err = lab.NewFleet(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.fleet.Close()) })
	s.identity, err = age.GenerateX25519Identity()
	require.NoError(t, err)
	s.client = rig.Connect(t, common.server.Address(), s.namespace)
	return s
}

// startWorker runs a worker until the test ends or stop is called.
func (s *stack) startWorker() (stop func()) {
	s.t.Helper()
	return s.startBuild(&worker.Versioning{})
}

// startBuild runs a worker of a build.
func (s *stack) startBuild(v *worker.Versioning) (stop func()) {
	s.t.Helper()
	config := s.workerConfig()
	config.Versioning = *v
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan struct{}), make(chan error, 1)
	config.Started = func() { close(started) }
	go func() { done <- worker.Run(ctx, config) }()
	select {
	case <-started:
	case err := <-done:
		cancel()
		require.NoError(s.t, err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(s.t, <-done)
	})
	s.t.Cleanup(stop)
	return stop
}

func (s *stack) workerConfig() worker.Config {
	s.t.Helper()
	env := s.env()
	provider, err := scaleway.New(scaleway.Config{Version: "test", Credentials: &scaleway.Credentials{
		AccessKey: env["SCW_ACCESS_KEY"], SecretKey: env["SCW_SECRET_KEY"], APIURL: env["SCW_API_URL"],
	}})
	require.NoError(s.t, err)
	log, err := logging.New(s.log, "json", "debug")
	require.NoError(s.t, err)
	return worker.Config{
		Temporal: s.client, Namespace: s.namespace, Provider: provider, KeyFile: env["IRONLOT_SSH_KEY"],
		AgentDirs: []string{common.agents}, Identities: []age.Identity{s.identity},
		MaxNodes: 100, Rate: 100, Log: log,
	}
}

// env is the lab's environment as a map.
func (s *stack) env() map[string]string {
	env := map[string]string{}
	for _, line := range s.fleet.Environment() {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	return env
}

// inputs renders and seals the lab's lot.
func (s *stack) inputs(edit func(*run.Node)) []run.NodeInput {
	s.t.Helper()
	l, err := lot.Load(s.fleet.Path("lot.yaml"))
	require.NoError(s.t, err)
	rendered, err := l.Render(s.t.Context())
	require.NoError(s.t, err)
	inputs, err := rendered.Seal(func(plain []byte) (string, error) { return seal.Seal(plain, s.identity.Recipient()) })
	require.NoError(s.t, err)
	for i := range inputs {
		if edit != nil {
			edit(&inputs[i].Node)
		}
	}
	return inputs
}

// startLot starts a lot's workflow.
func (s *stack) startLot(inputs []run.NodeInput) client.WorkflowRun {
	s.t.Helper()
	r, err := s.client.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{
		ID: run.LotID(inputs[0].Node.Lot), TaskQueue: run.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, run.WorkflowLot, run.LotInput{Lot: inputs[0].Node.Lot, Nodes: inputs}.Share())
	require.NoError(s.t, err)
	return r
}

// startNode starts one node's workflow without a lot.
func (s *stack) startNode(in run.NodeInput) client.WorkflowRun {
	s.t.Helper()
	r, err := s.client.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{
		ID: in.Node.ID(), TaskQueue: run.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, run.WorkflowNode, in)
	require.NoError(s.t, err)
	return r
}

// result waits for a node's end.
func (s *stack) result(r client.WorkflowRun) run.Status {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 4*time.Minute)
	defer cancel()
	var status run.Status
	if err := r.Get(ctx, &status); err != nil {
		s.t.Fatalf("run %s: %v\nstatus: %+v\nworker log:\n%s", r.GetID(), err, s.status(r.GetID()), s.log.Tail(4000))
	}
	return status
}

// status asks a run how it stands; a run that does not answer is empty.
func (s *stack) status(id string) run.Status { return rig.StatusOf(s.client, id) }

// waitFor waits until a run is in a state and, if given, in a phase.
func (s *stack) waitFor(id string, state run.State, phase run.Phase) run.Status {
	s.t.Helper()
	var status run.Status
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the run stood at %s in %s, problem %+v, timeline %+v", status.State, status.Phase, status.Problem, status.Timeline)
		}
	}()
	s.eventually(fmt.Sprintf("%s is %s in %s", id, state, phase), waitLong, func() bool {
		status = s.status(id)
		return status.State == state && (phase == "" || status.Phase == phase)
	})
	return status
}

// eventually waits for a condition of another process, which cannot tell us.
func (s *stack) eventually(what string, within time.Duration, cond func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %s in vain until %s\nworker log:\n%s", within, what, s.log.Tail(4000))
		}
		<-tick.C
	}
}

// histories exports the history of every workflow in the namespace.
func (s *stack) histories() map[string][]byte {
	s.t.Helper()
	list, err := s.client.ListWorkflow(s.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: s.namespace})
	require.NoError(s.t, err)
	out := map[string][]byte{}
	for _, e := range list.GetExecutions() {
		out[e.GetExecution().GetWorkflowId()] = historyJSON(s.t, s.client, e.GetExecution().GetWorkflowId())
	}
	return out
}

func isAlreadyStarted(err error) bool {
	_, ok := err.(*serviceerror.WorkflowExecutionAlreadyStarted) //nolint:errorlint // the SDK returns it bare
	return ok
}
