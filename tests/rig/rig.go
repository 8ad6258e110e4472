package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/provider/scaleway"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
)

// Rig is a lab with a namespace of its own and workers behind a proxy.
type Rig struct {
	Fleet     *lab.Fleet
	Client    client.Client // straight to the server
	Namespace string
	Proxy     *Proxy
	Patience  time.Duration // how long it waits for what must come

	t            testing.TB
	bin          Binaries
	dir          string
	identity     *age.X25519Identity
	identityFile string
	log          string // of all workers
}

// Patience is how long a rig of simulated machines waits.
const Patience = 4 * time.Minute

// New makes a rig on a Temporal server. The lab's base address must be one's
// own on this computer; what is zero in its options is small and fast.
func New(t testing.TB, bin Binaries, temporal string, script Script, o lab.Options) *Rig {
	t.Helper()
	r := &Rig{t: t, bin: bin, dir: t.TempDir(), Namespace: strings.ReplaceAll(o.Lot, "/", "-"), Patience: Patience}
	r.log = filepath.Join(r.dir, "worker.log")
	o.Dir = filepath.Join(r.dir, "lab")
	if o.Speed == 0 {
		o.Speed = 300
	}
	if o.Image.Size == 0 {
		o.Image = images.Spec{Size: 16 * layout.MiB, Data: 3 * layout.MiB}
	}
	var err error
	r.Fleet, err = lab.NewFleet(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Fleet.Close()) })
	if h, ok := script.(*Holds); ok {
		t.Cleanup(h.Open) // before the fleet closes, which waits for its machines
	}
	r.identity, err = age.GenerateX25519Identity()
	require.NoError(t, err)
	r.identityFile = filepath.Join(r.dir, "identity.txt")
	require.NoError(t, os.WriteFile(r.identityFile, []byte(r.identity.String()+"\n"), 0o600))
	r.Proxy, err = NewProxy(temporal, script)
	require.NoError(t, err)
	t.Cleanup(r.Proxy.Close)
	r.Client = Connect(t, temporal, r.Namespace)
	return r
}

// Quiet is a log for what a test does not look at.
func Quiet(t testing.TB) log.Logger {
	t.Helper()
	l, err := logging.New(io.Discard, "json", "error")
	require.NoError(t, err)
	return logging.Temporal(l)
}

// Inputs renders and seals the lab's lot, with a change to each node.
func (r *Rig) Inputs(edit func(*run.Node)) []run.NodeInput {
	r.t.Helper()
	l, err := lot.Load(r.Fleet.Path("lot.yaml"))
	require.NoError(r.t, err)
	rendered, err := l.Render(r.t.Context())
	require.NoError(r.t, err)
	inputs, err := rendered.Seal(func(plain []byte) (string, error) { return seal.Seal(plain, r.identity.Recipient()) })
	require.NoError(r.t, err)
	for i := range inputs {
		if edit != nil {
			edit(&inputs[i].Node)
		}
	}
	return inputs
}

// Start starts a node's run.
func (r *Rig) Start(in run.NodeInput) client.WorkflowRun {
	r.t.Helper()
	for asked := 1; ; asked++ {
		started, err := r.Client.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{
			ID: in.Node.ID(), TaskQueue: run.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		}, run.WorkflowNode, in)
		switch {
		case err == nil:
			return started
		case asked > 1 && temporal.IsWorkflowExecutionAlreadyStartedError(err): // the answer was late
			return r.Client.GetWorkflow(r.t.Context(), in.Node.ID(), "")
		case asked == 3:
			require.NoError(r.t, err)
		}
	}
}

// Status asks a run how it stands; one that does not answer is empty.
func (r *Rig) Status(id string) run.Status {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var status run.Status
	if value, err := r.Client.QueryWorkflow(ctx, id, "", run.QueryStatus); err == nil {
		_ = value.Get(&status)
	}
	return status
}

// Settled waits until a run has ended or is stuck, and tells how. It survives
// a server that is away.
func (r *Rig) Settled(id string) run.Status {
	r.t.Helper()
	var status run.Status
	r.Eventually("the run "+id+" has settled", func() bool {
		status = r.Status(id)
		return status.State.Final() || status.State == run.Stuck
	})
	return status
}

// Update sends a wish to a run.
func (r *Rig) Update(id, name string, request any) error {
	h, err := r.Client.UpdateWorkflow(r.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return h.Get(r.t.Context(), nil)
}

// Eventually waits for a condition of another process, which cannot tell us.
func (r *Rig) Eventually(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(r.Patience)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited %s in vain until %s\nworkers' log:\n%s", r.Patience, what, r.LogTail())
		}
		<-tick.C
	}
}

// LogTail is the end of the workers' log.
func (r *Rig) LogTail() string {
	data, err := os.ReadFile(r.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-6000):])
}

// Bases gives each rig of a process loopback addresses of its own.
type Bases struct {
	Net  int // second byte
	next atomic.Int32
}

// Next is the base of another fleet.
func (b *Bases) Next() string { return fmt.Sprintf("127.%d.%d.0", b.Net, b.next.Add(1)) }

// Person is somebody at the provider's console.
func (r *Rig) Person() provider.Provider {
	r.t.Helper()
	env := map[string]string{}
	for _, line := range r.Fleet.Environment() {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	p, err := scaleway.New(scaleway.Config{Version: "test", Credentials: &scaleway.Credentials{
		AccessKey: env["SCW_ACCESS_KEY"], SecretKey: env["SCW_SECRET_KEY"], APIURL: env["SCW_API_URL"],
	}})
	require.NoError(r.t, err)
	return p
}

// PublicKey is the lab's SSH key, as an authorized_keys line.
func (r *Rig) PublicKey() string {
	r.t.Helper()
	key, err := os.ReadFile(r.Fleet.Path("id_ed25519.pub"))
	require.NoError(r.t, err)
	return strings.TrimSpace(string(key))
}

// History exports a run's history as `temporal workflow show -o json` does.
func (r *Rig) History(id string) []byte {
	r.t.Helper()
	out, err := history.Export(r.t.Context(), r.Client, id, "")
	require.NoError(r.t, err)
	return out
}
