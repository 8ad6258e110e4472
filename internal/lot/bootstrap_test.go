package lot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
)

// edited loads a lot of two nodes, a control plane and a worker, with a text
// replaced by another.
func edited(t *testing.T, from, to string) *lot.Lot {
	t.Helper()
	path := lottest.Lot(t, "one", 2)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), from)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
	l, err := lot.Load(path)
	require.NoError(t, err)
	return l
}

// nodesOfInputs renders and gives what the runs are told.
func nodesOfInputs(t *testing.T, l *lot.Lot) []run.Node {
	t.Helper()
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	inputs, err := rendered.Seal(func([]byte) (string, error) { return "sealed", nil })
	require.NoError(t, err)
	var nodes []run.Node
	for _, in := range inputs {
		nodes = append(nodes, in.Node)
	}
	return nodes
}

func TestBootstrapOfAControlPlane(t *testing.T) {
	t.Parallel()
	nodes := nodesOfInputs(t, edited(t, "    secondaryDisks: keep", "    bootstrap: true"))
	require.True(t, nodes[0].Bootstrap)
	require.True(t, nodes[0].ControlPlane)
	require.False(t, nodes[1].Bootstrap)
	require.False(t, nodes[1].ControlPlane)
}

func TestBootstrapOfAWorkerIsRefused(t *testing.T) {
	t.Parallel()
	l := edited(t, "name: metal-2}\n", "name: metal-2}\n    bootstrap: true\n")
	_, err := l.Render(t.Context())
	require.ErrorContains(t, err, "nodes[1].bootstrap: is true for node node-2, whose config makes it a worker, and only a control plane can start a cluster; move it to one")
}

// TestBootstrapNeedsAnAdmin: the talosconfig of a reader starts no etcd.
func TestBootstrapNeedsAnAdmin(t *testing.T) {
	t.Parallel()
	l := edited(t, "    secondaryDisks: keep", "    bootstrap: true")
	cluster, err := talosnode.NewCluster("one", "https://10.0.0.1:6443")
	require.NoError(t, err)
	reader, err := cluster.TalosconfigFor(role.Reader)
	require.NoError(t, err)
	for name, data := range map[string][]byte{"controlplane.yaml": cluster.ControlPlane, "worker.yaml": cluster.Worker, "talosconfig": reader} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(l.File), name), data, 0o600))
	}
	_, err = l.Render(t.Context())
	require.ErrorContains(t, err, `nodes[0].bootstrap: needs a talosconfig with the role os:admin, and context "one" has os:reader; use one from `+"`talosctl gen config`")
}

// TestReadyOfANode: the defaults' list gives way as a whole, the hold time
// alone stays.
func TestReadyOfANode(t *testing.T) {
	t.Parallel()
	nodes := nodesOfInputs(t, edited(t, "defaults:\n", "defaults:\n  ready: {hold: 1m, accept: [no-cni, uninitialized]}\n"))
	require.Equal(t, run.ReadyRule{Hold: time.Minute, Accept: run.Shortfalls()}, nodes[1].Ready)
	nodes = nodesOfInputs(t, edited(t, "    secondaryDisks: keep", "    ready: {accept: [no-cni]}"))
	require.Equal(t, []run.Shortfall{run.NoCNI}, nodes[0].Ready.Accept)
	require.Equal(t, run.DefaultHold, nodes[0].Ready.HoldOr())
	require.Empty(t, nodes[1].Ready.Accept)
}
