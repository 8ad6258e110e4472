package devserver

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/ironlot/ironlot/internal/testenv"
)

// options are those of a server of its own, on free ports.
func options(t *testing.T) Options {
	t.Helper()
	binary, err := find([]string{"../../bin"})
	if err != nil {
		testenv.Lacks(t, err.Error())
	}
	dir := t.TempDir()
	return Options{
		Binary: binary, Database: filepath.Join(dir, "temporal.db"), LogFile: filepath.Join(dir, "temporal.log"),
		Port: testenv.Port(), UIPort: testenv.Port(),
		Logger: log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
	}
}

func start(t *testing.T, o Options) (*Server, client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := Start(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	c, err := client.DialContext(ctx, client.Options{HostPort: s.Address(), Logger: o.Logger})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return s, c
}

func TestStartPreparesAndKeepsItsState(t *testing.T) {
	t.Parallel()
	o := options(t)
	s, c := start(t, o)

	namespace, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	require.Equal(t, Retention, namespace.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())
	attributes, err := c.OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: "default"})
	require.NoError(t, err)
	for _, name := range Attributes() {
		require.Equal(t, enumspb.INDEXED_VALUE_TYPE_KEYWORD, attributes.GetCustomAttributes()[name], name)
	}
	require.NoError(t, AddAttributes(t.Context(), c, "default"), "nothing to add")

	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "kept", TaskQueue: "nobody"}, "Sleep")
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	require.Contains(t, s.Err().Error(), "Temporal's server ended")

	_, c = start(t, o)
	found, err := c.DescribeWorkflow(t.Context(), "kept", "")
	require.NoError(t, err)
	require.Equal(t, run.GetRunID(), found.WorkflowExecution.RunID)
}

func TestDeathIsNoticed(t *testing.T) {
	t.Parallel()
	o := options(t)
	s, _ := start(t, o)
	require.NoError(t, s.cmd.Process.Kill())
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the end of the server was not noticed")
	}
	require.ErrorContains(t, s.Err(), "killed")
	require.NoError(t, s.Stop(), "stopping what has ended is fine")
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	for _, ui := range []bool{false, true} {
		o := options(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port, want := &o.Port, "Temporal cannot listen on "+l.Addr().String()
		if ui {
			port, want = &o.UIPort, "the Web UI cannot listen on "+l.Addr().String()
		}
		*port = l.Addr().(*net.TCPAddr).Port
		_, err = Start(t.Context(), o)
		require.ErrorContains(t, err, want)
		require.NoFileExists(t, o.LogFile, "nothing was started")
		require.NoError(t, l.Close())
	}
}

func TestBadPorts(t *testing.T) {
	t.Parallel()
	for want, ports := range map[string][2]int{
		"cannot both have port 7233":              {7233, 7233},
		"-1 is no port for Temporal":              {-1, 8233},
		"give one from 1 to 65535 with --ui-port": {testenv.Port(), 65536},
		"0 is no port for the Web UI":             {testenv.Port(), 0},
	} {
		o := options(t)
		o.Port, o.UIPort = ports[0], ports[1]
		_, err := Start(t.Context(), o)
		require.ErrorContains(t, err, want)
		require.NoFileExists(t, o.LogFile, "nothing was started")
	}
}

func TestBadBinary(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Binary = filepath.Join(t.TempDir(), "temporal")
	require.NoError(t, os.WriteFile(o.LogFile, []byte("words of an earlier server\n"), 0o600))
	require.NoError(t, os.WriteFile(o.Binary, []byte("#!/bin/sh\necho cannot open the database >&2\nexit 3\n"), 0o700))
	_, err := Start(t.Context(), o)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "cannot open the database")
	require.NotContains(t, err.Error(), "earlier server")

	o.Binary += "-missing"
	_, err = Start(t.Context(), o)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestStartIsBounded(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Binary = filepath.Join(t.TempDir(), "temporal")
	require.NoError(t, os.WriteFile(o.Binary, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Start(ctx, o)
	require.ErrorContains(t, err, "did not come up")
}

func TestFind(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	empty, full := t.TempDir(), t.TempDir()
	_, err := find([]string{empty})
	require.ErrorContains(t, err, BuildCommand)

	require.NoError(t, os.Mkdir(filepath.Join(empty, "temporal"), 0o700), "a directory of that name is not it")
	want := filepath.Join(full, "temporal")
	require.NoError(t, os.WriteFile(want, nil, 0o700))
	got, err := find([]string{empty, full})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	got := environment([]string{"PATH=/bin", "SCW_SECRET_KEY=x", "IRONLOT_AGE_IDENTITY=x", "TEMPORAL_API_KEY=x", "HOME=/me"})
	require.Equal(t, []string{"PATH=/bin", "HOME=/me", "GOGC=200"}, got)
	require.Equal(t, []string{"GOGC=off"}, environment([]string{"GOGC=off"}), "who has set it knows why")
}
