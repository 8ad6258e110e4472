package qemu

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/provider/scaleway"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/talos"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/internal/worker"
	"github.com/ironlot/ironlot/tests/rig"
)

// The image is as small as kernel and RAM disk allow: under emulation
// everything is CPU.
const (
	imageSize = qemu.MinImage
	imageData = 4 * layout.MiB
)

// patience bounds one provisioning under emulation, with other tests beside.
const patience = 25 * time.Minute

// stack is a lab of one QEMU server with a namespace and a worker.
type stack struct {
	t         *testing.T
	fleet     *lab.Fleet
	machine   *qemu.Machine
	cloud     *scaleway.Client
	client    client.Client
	namespace string
	identity  *age.X25519Identity
	log       *testenv.Log
}

func newStack(t *testing.T, o lab.Options) *stack {
	t.Helper()
	n, base := common.base()
	o.Kit, o.Servers, o.Dir, o.Base, o.Lot = common.kit, 1, t.TempDir(), base, fmt.Sprintf("lot%d", n)
	o.Speed = 20
	if o.Image.Size == 0 {
		o.Image = images.Spec{Size: imageSize, Data: imageData, Seed: 1}
	}
	s := &stack{t: t, namespace: fmt.Sprintf("test-%d", n), log: &testenv.Log{}}
	o.Log = func(line string) { fmt.Fprintln(s.log, "console:", line) }
	var err error
	s.fleet, err = lab.NewFleet(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.fleet.Close())
		t.Log(effort(s.machine))
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console and worker:\n%s", s.log.Tail(12000))
		}
	})
	s.machine = s.fleet.Servers()[0].Guest
	s.identity, err = age.GenerateX25519Identity()
	require.NoError(t, err)
	env := map[string]string{}
	for _, line := range s.fleet.Environment() {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	s.cloud, err = scaleway.New(scaleway.Config{Version: "test", Credentials: &scaleway.Credentials{
		AccessKey: env["SCW_ACCESS_KEY"], SecretKey: env["SCW_SECRET_KEY"], APIURL: env["SCW_API_URL"],
	}})
	require.NoError(t, err)
	s.client = rig.Connect(t, common.server.Address(), s.namespace)
	s.startWorker()
	return s
}

func (s *stack) startWorker() {
	s.t.Helper()
	log, err := logging.New(s.log, "console", "info")
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan struct{}), make(chan error, 1)
	config := worker.Config{
		Temporal: s.client, Namespace: s.namespace, Provider: s.cloud, KeyFile: s.fleet.Path("id_ed25519"),
		AgentDirs: []string{common.agents}, Identities: []age.Identity{s.identity}, MaxNodes: 10, Rate: 100, Log: log,
		Started: func() { close(started) },
	}
	go func() { done <- worker.Run(ctx, config) }()
	select {
	case <-started:
	case err := <-done:
		cancel()
		require.NoError(s.t, err)
	}
	s.t.Cleanup(func() {
		cancel()
		require.NoError(s.t, <-done)
	})
}

// node is the lot's one node, its secrets sealed.
func (s *stack) node() run.NodeInput {
	s.t.Helper()
	l, err := lot.Load(s.fleet.Path("lot.yaml"))
	require.NoError(s.t, err)
	rendered, err := l.Render(s.t.Context())
	require.NoError(s.t, err)
	inputs, err := rendered.Seal(func(plain []byte) (string, error) { return seal.Seal(plain, s.identity.Recipient()) })
	require.NoError(s.t, err)
	require.Len(s.t, inputs, 1)
	return inputs[0]
}

// start starts Ironlot on the server.
func (s *stack) start(edit func(*run.Node)) client.WorkflowRun {
	s.t.Helper()
	in := s.node()
	if edit != nil {
		edit(&in.Node)
	}
	r, err := s.client.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{
		ID: in.Node.ID(), TaskQueue: run.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, run.WorkflowNode, in)
	require.NoError(s.t, err)
	return r
}

// ready runs Ironlot on the server and wants it Ready.
func (s *stack) ready(edit func(*run.Node)) run.Status {
	s.t.Helper()
	status := s.settle(s.start(edit))
	require.Equal(s.t, run.Ready, status.State, "stuck in %s: %+v", status.Phase, status.Problem)
	s.t.Logf("Ready: %s", times(status))
	return status
}

// stuck runs Ironlot on the server and wants it stuck in a phase.
func (s *stack) stuck(phase run.Phase, edit func(*run.Node)) run.Status {
	s.t.Helper()
	status := s.settle(s.start(edit))
	require.Equal(s.t, run.Stuck, status.State)
	require.Equal(s.t, phase, status.Phase, "%+v", status.Problem)
	s.t.Logf("stuck in %s: %s; %s", phase, status.Problem.Message, status.Problem.Remedy)
	return status
}

// settle waits until a run is Ready or stuck.
func (s *stack) settle(r client.WorkflowRun) run.Status {
	s.t.Helper()
	var status run.Status
	s.eventually(r.GetID()+" is Ready or stuck", func() bool {
		status = s.status(r.GetID())
		return status.State == run.Ready || status.State == run.Stuck
	})
	return status
}

func (s *stack) status(id string) run.Status { return rig.StatusOf(s.client, id) }

// abort ends a run, so that another may have the server.
func (s *stack) abort() {
	s.t.Helper()
	id := s.node().Node.ID()
	_, err := s.client.UpdateWorkflow(s.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: run.UpdateAbort, WaitForStage: client.WorkflowUpdateStageAccepted, Args: []any{run.AbortRequest{Reason: "test"}},
	})
	require.NoError(s.t, err)
	var status run.Status
	require.NoError(s.t, s.client.GetWorkflow(s.t.Context(), id, "").Get(s.t.Context(), &status))
	require.Equal(s.t, run.Aborted, status.State)
}

// eventually waits for a condition of another process, which cannot tell us.
func (s *stack) eventually(what string, cond func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(250 * time.Millisecond) // a query costs the guests processor time
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %s in vain until %s", patience, what)
		}
		<-tick.C
	}
}

// times says how long each phase took. They are an emulator's: never
// asserted.
func times(status run.Status) string {
	var parts []string
	for _, p := range status.Timeline {
		parts = append(parts, fmt.Sprintf("%s %.1fs", p.Phase, p.Ended.Sub(p.Started).Seconds()))
	}
	if w := status.Facts.Written; w != nil {
		parts = append(parts, fmt.Sprintf("%+v", *w))
	}
	return strings.Join(parts, ", ")
}

// effort says what a machine cost, however busy the computer was.
func effort(m *qemu.Machine) string {
	var cpu time.Duration
	boots := m.Boots()
	for _, b := range boots {
		cpu += b.CPU
	}
	return fmt.Sprintf("QEMU used %.0f s of a processor in %d boots", cpu.Seconds(), len(boots))
}

// plainConfig is the node's config in clear, rendered as a worker does.
func (s *stack) plainConfig() string {
	s.t.Helper()
	in := s.node()
	bundle := func(sealed string) (b talos.Bundle) {
		if sealed == "" {
			return b
		}
		plain, err := seal.Open(sealed, s.identity)
		require.NoError(s.t, err)
		b, err = talos.ParseBundle(plain)
		require.NoError(s.t, err)
		return b
	}
	shared := bundle(in.Sealed.Config)
	rendered, err := talos.Render(shared.Input(bundle(in.Sealed.Own), in.Node.Name, in.Node.Values(0)))
	require.NoError(s.t, err)
	return string(rendered.Bytes)
}

// patch replaces the lot's patch, if one is given, and gives the one before.
func (s *stack) patch(text string) string {
	s.t.Helper()
	old, err := os.ReadFile(s.fleet.Path("patch.yaml"))
	require.NoError(s.t, err)
	if text != "" {
		require.NoError(s.t, os.WriteFile(s.fleet.Path("patch.yaml"), []byte(text), 0o600))
	}
	return string(old)
}
