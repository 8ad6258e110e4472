package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/home"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/internal/worker"
)

// credentials are well formed and belong to nobody. They make up's tests
// sequential: the provider's SDK reads the process's environment.
func credentials(t *testing.T) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, nil, 0o600))
	t.Setenv("SCW_CONFIG_PATH", config)
	t.Setenv("SCW_ACCESS_KEY", "SCWXXXXXXXXXXXXXXXXX")
	t.Setenv("SCW_SECRET_KEY", "11111111-2222-4333-8444-555555555555")
	t.Setenv("SCW_DEFAULT_ORGANIZATION_ID", "11111111-2222-4333-8444-555555555555")
	t.Setenv("SCW_DEFAULT_PROJECT_ID", "11111111-2222-4333-8444-555555555555")
	t.Setenv("SCW_API_URL", "http://127.0.0.1:9")
}

// upArgs are those of an `up` on ports of its own.
func upArgs(t *testing.T) []string {
	t.Helper()
	return []string{"up", "--temporal", temporalBinary(t), "--port", fmt.Sprint(testenv.Port()), "--ui-port", fmt.Sprint(testenv.Port())}
}

func TestUp(t *testing.T) {
	credentials(t)
	k := newConsole(t, "")
	working := make(chan worker.Config, 1)
	k.work = func(ctx context.Context, config worker.Config) error {
		config.Started()
		working <- config
		<-ctx.Done()
		// The server is still there while the worker says goodbye.
		_, err := config.Temporal.CheckHealth(context.Background(), &client.CheckHealthRequest{})
		return err
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	code := make(chan int, 1)
	go func() { code <- k.run(ctx, upArgs(t)) }()
	var config worker.Config
	select {
	case config = <-working:
	case c := <-code:
		t.Fatalf("up ended with %d: %s", c, k.err)
	}
	require.Len(t, config.Identities, 1)
	require.Equal(t, client.DefaultNamespace, config.Namespace)

	h, err := home.Open(k.env.LookupEnv)
	require.NoError(t, err)
	up, ok := h.Up()
	require.True(t, ok)
	require.Contains(t, k.out.String(), "Temporal   "+up.Address+"\nWeb UI     "+up.WebUI+"\n")

	// Other commands find it, and a second one is refused.
	other := k.again()
	require.Equal(t, exitOK, other.starter("status"), other.err)
	second := k.again()
	require.Equal(t, exitRefused, second.starter(upArgs(t)...))
	require.Contains(t, second.err.String(), "another `up`")

	interrupt()
	require.Equal(t, exitOK, <-code, k.err)
	require.Contains(t, k.out.String(), "\nStopping the worker, then Temporal: a few seconds. Nothing is lost")
	_, ok = h.Up()
	require.False(t, ok, "nothing is told of what has stopped")
}

func TestUpEndsWithItsWorker(t *testing.T) {
	credentials(t)
	k := newConsole(t, "")
	k.work = func(context.Context, worker.Config) error { return errors.New("no agent") }
	require.Equal(t, exitFailed, k.starter(upArgs(t)...))
	require.Contains(t, k.err.String(), "starter: no agent")
}

func TestUpUsesTheTemporalThatIsThere(t *testing.T) {
	credentials(t)
	c := startCluster(t)
	k := newConsole(t, c.address)
	k.work = func(_ context.Context, config worker.Config) error {
		config.Started()
		return nil
	}
	require.Equal(t, exitOK, k.starter("up"), k.err)
	require.Contains(t, k.out.String(), "Temporal   "+c.address)
	require.NoFileExists(t, filepath.Join(k.vars["IRONLOT_HOME"], "temporal.db"))
}

// TestUpBesideAnAddress: a variable that is still set from another terminal makes
// of `up` a worker alone, which must not surprise anybody.
func TestUpBesideAnAddress(t *testing.T) {
	credentials(t)
	nobody := testenv.Nobody()
	k := newConsole(t, nobody)
	k.work = func(context.Context, worker.Config) error { return errors.New("must not run") }
	for _, flag := range []string{"--port", "--ui-port", "--temporal"} {
		k = k.again()
		require.Equal(t, exitRefused, k.starter("up", flag, "7233"))
		require.Equal(t, "starter: "+flag+" is for a Temporal that `up` starts itself, and TEMPORAL_ADDRESS names one that is there already; "+
			"leave out "+flag+", or TEMPORAL_ADDRESS for a Temporal that `up` starts\n", k.err.String())
	}
	k = k.again()
	require.Equal(t, exitUnreachable, k.starter("up"))
	require.Equal(t, "starter: Temporal does not answer at "+nobody+": nothing listens there; "+
		"start it, or leave out TEMPORAL_ADDRESS, and `starter up` starts one of its own\n", k.err.String())
	k = k.again()
	delete(k.vars, "TEMPORAL_ADDRESS")
	require.Equal(t, exitUnreachable, k.starter("up", "--address", nobody))
	require.Contains(t, k.err.String(), "; start it, or leave out --address, and")
}

func TestUpWithoutCredentials(t *testing.T) {
	credentials(t)
	t.Setenv("SCW_SECRET_KEY", "")
	k := newConsole(t, "")
	k.work = func(context.Context, worker.Config) error { return errors.New("must not run") }
	require.Equal(t, exitRefused, k.starter(upArgs(t)...), k.err)
	require.NoFileExists(t, filepath.Join(k.vars["IRONLOT_HOME"], "temporal.db"), "nothing was started")
}
