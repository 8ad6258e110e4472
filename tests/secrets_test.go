package tests

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

// secretField is a line of a config that holds a secret.
var secretField = regexp.MustCompile(`(?m)^\s*-?\s*(?:key|client-key-data|token|secret|crt\.key|secretboxEncryptionSecret|aescbcEncryptionSecret): "?(\S{8,}?)"?$`)

// canaries lists what must appear nowhere in clear.
func (s *stack) canaries() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	for _, name := range []string{"controlplane.yaml", "worker.yaml", "talosconfig", "kubeconfig"} {
		text, err := os.ReadFile(s.fleet.Path(name))
		require.NoError(s.t, err)
		for _, m := range secretField.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = "a secret of " + name
		}
	}
	require.Greater(s.t, len(found), 8, "the configs' secrets are found at all")
	key, err := os.ReadFile(s.fleet.Path("id_ed25519"))
	require.NoError(s.t, err)
	for _, line := range strings.Split(string(key), "\n") {
		if len(line) > 20 && !strings.HasPrefix(line, "-----") {
			found[line] = "the SSH key"
		}
	}
	found[s.env()["SCW_SECRET_KEY"]] = "the provider's secret key"
	found[s.identity.String()] = "the age identity"
	return found
}

// arguments collects the arguments of all processes while a test runs.
func (s *stack) arguments() (stop func() string) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var seen strings.Builder
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, f := range files {
				if line, err := os.ReadFile(f); err == nil {
					seen.Write(line)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() string { cancel(); done.Wait(); return seen.String() }
}

// TestNothingSecretInClear looks everywhere after runs of both deliveries, good
// ones and ones that fail where they hold the config.
func TestNothingSecretInClear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault string // empty: all nodes become Ready
		edit  func(*run.Node)
	}{
		"maintenance":                 {"", nil},
		"state":                       {"", byState},
		"state, the disk fails":       {"write-error", byState},
		"maintenance, foreign config": {"foreign-config", func(n *run.Node) { n.Timeouts.Apply = 10 * time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := lab.Options{Servers: 2, Kubernetes: true}
			if c.fault != "" {
				options = lab.Options{Servers: 1, Kubernetes: true, Faults: faults(t, c.fault)}
			}
			nothingSecretInClear(t, newStack(t, options), c.edit, c.fault == "")
		})
	}
}

func nothingSecretInClear(t *testing.T, s *stack, edit func(*run.Node), good bool) {
	t.Helper()
	config := s.workerConfig()
	s.startWorker()
	stopArguments := s.arguments()
	inputs := s.inputs(edit)
	started := s.startLot(inputs)

	// The rescue password is there only while the server is in rescue.
	canaries := s.canaries()
	for _, in := range inputs {
		s.eventually("the server has a rescue password", time.Minute, func() bool {
			password, err := config.Provider.RescuePassword(t.Context(), in.Node.Zone, in.Node.ServerID)
			if err == nil {
				canaries[password] = "a rescue password"
			}
			return err == nil
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if !good {
		id := inputs[0].Node.ID()
		s.waitFor(id, run.Stuck, "")
		s.abort(id)
	}
	require.NoError(t, started.Get(ctx, nil))

	places := map[string]string{"the worker's log at debug": s.log.String(), "processes' arguments": stopArguments()}
	for id, history := range s.histories() {
		places["the history of "+id] = string(history)
	}
	require.Len(t, places, 2+len(inputs)+1)
	logs := len(places)
	for _, server := range s.fleet.Servers() {
		for _, b := range server.Machine.Boots() {
			if len(b.Commands) > 0 {
				places["commands on "+server.Name+" boot "+b.ID] = strings.Join(b.Commands, "\n")
			}
		}
	}
	for _, in := range inputs {
		want := run.Ready
		if !good {
			want = run.Aborted
		}
		require.Equal(t, want, s.status(in.Node.ID()).State)
	}
	require.GreaterOrEqual(t, len(places), logs+len(inputs), "commands were recorded")
	for place, text := range places {
		require.NotEmpty(t, text, place)
		for secret, what := range canaries {
			require.NotContains(t, text, secret, "%s holds %s", place, what)
		}
	}
}
