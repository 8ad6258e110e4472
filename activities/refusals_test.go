package activities

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
	"github.com/ironlot/ironlot/internal/testenv"
)

// TestRefusalsOfAMachineThatIsTaken: only the job of a run that is known to
// have ended is evicted.
func TestRefusalsOfAMachineThatIsTaken(t *testing.T) {
	t.Parallel()
	const ofRun = "01980000-0000-7000-8000-000000000001-write-1.1"
	var asked []string
	a := New(Config{RunEnded: func(_ context.Context, workflowID, runID string) (bool, error) {
		asked = append(asked, workflowID+" "+runID)
		switch len(asked) {
		case 1:
			return true, nil
		case 2:
			return false, nil
		default:
			return false, errors.New("deadline exceeded")
		}
	}})
	in := worker1(func(in *run.PhaseInput) { in.Node.Provider = "scaleway" })
	for _, byHand := range []string{"", "by-hand", "install-of-somebody-else-with-a-long-name-1", ofRun[:36]} {
		ended, err := a.leftBehind(t.Context(), in, byHand)
		require.NoError(t, err)
		require.False(t, ended, byHand)
	}
	require.Empty(t, asked)
	ended, err := a.leftBehind(t.Context(), in, ofRun)
	require.NoError(t, err)
	require.True(t, ended)
	require.Equal(t, []string{"provision/scaleway/id " + ofRun[:36]}, asked)
	ended, err = a.leftBehind(t.Context(), in, ofRun)
	require.NoError(t, err)
	require.False(t, ended, "it is at work")
	_, err = a.leftBehind(t.Context(), in, ofRun)
	require.EqualError(t, err, "Temporal does not say whether the run 01980000-0000-7000-8000-000000000001 has ended: deadline exceeded")
	require.Equal(t, fault.Transient, fault.ClassOf(err))

	err = taken(in, "by-hand")
	require.ErrorIs(t, err, errTaken)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.ErrorContains(t, err, `somebody else works on server em-1: its rescue system runs the job "by-hand", which is of no run that this Temporal knows to have ended; `+
		"find out who that is and let it end, or reboot the server, then retry")
}

// TestJobsThatFail: the agent's words, its log's end and a remedy.
func TestJobsThatFail(t *testing.T) {
	t.Parallel()
	in, exit := worker1(nil), 1
	log := []api.LogEntry{{Event: "run", Text: "mdadm", Args: []string{"--stop", "/dev/md0"}, Exit: &exit, Output: "busy"}}
	require.NoError(t, outcome(in, api.JobStatus{State: api.JobSucceeded, Result: &api.JobResult{}}))

	err := outcome(in, api.JobStatus{State: api.JobFailed, Log: log, Error: api.ErrorFrom(fault.Operator("pull the disk", "/dev/sda does not write"))})
	require.EqualError(t, err, "/dev/sda does not write; pull the disk")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	f, _ := fault.As(err)
	require.Contains(t, f.Tail, `run mdadm ["--stop" "/dev/md0"] exit 1: busy`)

	err = outcome(in, api.JobStatus{Kind: api.Write, State: api.JobCanceled, Log: log})
	require.EqualError(t, err, "write on server em-1 ended as canceled without a result")
	require.Equal(t, fault.Transient, fault.ClassOf(err))

	err = gaveUp(fault.Retry("the image server answers 503"), "")
	require.EqualError(t, err, "the job failed 5 times, the last time because the image server answers 503; mend the cause, then retry")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	err = gaveUp(fault.Operator("pull the disk", "/dev/sda does not write").WithTail("the log's end"), "")
	require.EqualError(t, err, "the job failed 5 times, the last time because /dev/sda does not write; pull the disk; then retry")
	f, _ = fault.As(err)
	require.Equal(t, "the log's end", f.Tail)
	err = gaveUp(fault.New(fault.Transient, "give it with `starter retry LOT NODE`", "the disk fails").WithTail("the log's end"), "job 1 of 5: no\n")
	f, _ = fault.As(err)
	require.Equal(t, "give it with `starter retry LOT NODE`", f.Remedy, "a remedy that ends with retry is not told to retry")
	require.Equal(t, "job 1 of 5: no\nthe log's end", f.Tail)
}

// TestPhasesWithoutTheirGround go back: what they build on is not there.
func TestPhasesWithoutTheirGround(t *testing.T) {
	t.Parallel()
	a := New(Config{})
	_, connected := a.connectPinned(t.Context(), &beat{}, worker1(nil))
	phase := func(do phaseFunc) error {
		_, err := do(t.Context(), &beat{}, worker1(nil))
		return err
	}
	for want, err := range map[string]error{
		"the run knows of no rescue boot of server em-1":    connected,
		"no system disk of server em-1 has been chosen yet": phase(a.diskPrep),
		"no image is staged on server em-1":                 phase(a.write),
		"the run knows of no rescue boot of server em-1 ":   phase(a.sysrqReset),
	} {
		require.EqualError(t, err, strings.TrimSpace(want))
		require.Equal(t, fault.RescueLost, fault.ClassOf(err))
	}
}

// TestConfigThatCannotBeFetched: Temporal did not give the run's input.
func TestConfigThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	a := New(Config{Sealed: func(context.Context, string, string) (run.Sealed, error) {
		return run.Sealed{}, errors.New("history is away")
	}})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	var entered int
	a.register(env, "phase", func(context.Context, *beat, run.PhaseInput) (run.PhaseOutput, error) {
		entered++
		return run.PhaseOutput{}, nil
	})
	_, err := env.ExecuteActivity("phase", worker1(func(in *run.PhaseInput) { in.TakesConfig = true }))
	require.ErrorContains(t, err, "the sealed config of node worker-1 cannot be fetched from its run: history is away")
	require.Zero(t, entered)
	for _, in := range []run.PhaseInput{{}, {TakesConfig: true, Sealed: &run.Sealed{}}} {
		_, err := env.ExecuteActivity("phase", in)
		require.NoError(t, err)
	}
	require.Equal(t, 2, entered)
}

// TestImageThatCannotBeRead: an address that is none, and a server that ends
// in the middle.
func TestImageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write([]byte("\x28\xb5"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	a := New(Config{HTTP: server.Client()})
	_, err := a.lookAtImage(t.Context(), run.Image{URL: "http://images.example/%zz?CANARY"})
	require.EqualError(t, err, "the image's address (unreadable) is not usable; correct image.url in the lot file")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	_, err = a.lookAtImage(t.Context(), run.Image{URL: server.URL + "/image?CANARY"})
	require.ErrorContains(t, err, "reading the start of the image at "+server.URL+"/image failed: unexpected EOF")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
}

// TestServersThatAreLiveNodes are refused: of whichever cluster, and one that
// resets every connection.
func TestServersThatAreLiveNodes(t *testing.T) {
	t.Parallel()
	cluster, err := talosnode.NewCluster("ours", "https://192.0.2.10:6443")
	require.NoError(t, err)
	client, err := talos.ParseTalosconfig(cluster.Talosconfig, "")
	require.NoError(t, err)
	const remedy = "; take it out of the cluster first, or say `reprovision: true` for it in the lot file if it may be erased"
	for name, c := range map[string]struct {
		addr  string
		state talos.APIState
		want  string
	}{
		"of another cluster": {wantsCertificate(t), talos.Configured, "server em-1 is a live, configured member of some Talos cluster" + remedy},
		"resets":             {resets(t), talos.Resetting, "server em-1 resets every connection to its Talos API, as a configured node does that cannot reach its control plane" + remedy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := worker1(func(in *run.PhaseInput) { in.Facts.Address, in.Node.TalosPort = split(t, c.addr) })
			seen, err := checkNotLive(t.Context(), in, &secrets{client: client})
			require.EqualError(t, err, c.want)
			require.Equal(t, c.state, seen)
			require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
			in.Node.Reprovision = true
			seen, err = checkNotLive(t.Context(), in, &secrets{client: client})
			require.NoError(t, err)
			require.Empty(t, seen, "nobody looked")
		})
	}
}

// TestConfigsThatCannotBeCompared: the dry run says why.
func TestConfigsThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	cluster, err := talosnode.NewCluster("ours", "https://192.0.2.10:6443")
	require.NoError(t, err)
	admin, err := talos.ParseTalosconfig(cluster.Talosconfig, "")
	require.NoError(t, err)
	data, err := cluster.TalosconfigFor("os:reader")
	require.NoError(t, err)
	reader, err := talos.ParseTalosconfig(data, "")
	require.NoError(t, err)
	nobody := testenv.Nobody()
	for want, c := range map[string]struct {
		addr   string
		client *talos.ClientConfig
	}{
		"no configured Talos node answers at " + nobody + " (closed)":                   {nobody, admin},
		"the lot's talosconfig has not the role os:admin, which reading a config needs": {wantsCertificate(t), reader},
	} {
		_, _, err := runningConfig(t.Context(), c.addr, &secrets{client: c.client})
		require.EqualError(t, err, want)
	}
}

// wantsCertificate is a server that wants a client certificate, as apid of a
// configured node does.
func wantsCertificate(t *testing.T) (addr string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(), NextProtos: []string{"h2"}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// resets is a server that resets every connection.
func resets(t *testing.T) (addr string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1)) // the hello has arrived
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// split gives an address's host and port.
func split(t *testing.T, addr string) (string, int) {
	t.Helper()
	at, err := netip.ParseAddrPort(addr)
	require.NoError(t, err)
	return at.Addr().String(), int(at.Port())
}
