package lot_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/talos"
)

func TestRenderAndSeal(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 2)
	other := t.TempDir()
	lottest.Cluster(t, other, "other")
	addContext(t, filepath.Join(filepath.Dir(path), "talosconfig"), filepath.Join(other, "talosconfig"))

	l, err := lot.Load(path)
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(rendered.Warnings, "\n"), "has no digest")

	var clear []string
	inputs, err := rendered.Seal(func(plaintext []byte) (string, error) {
		clear = append(clear, string(plaintext))
		return "sealed", nil
	})
	require.NoError(t, err)
	require.Len(t, inputs, 2)
	require.Equal(t, l.Nodes[0].Run, inputs[0].Node)
	require.Len(t, clear, 3, "the talosconfig and two configs")

	// What the workers open must be whole: the config under its name, and a
	// talosconfig of the one context alone.
	config, err := talos.Inspect(talos.Named{Name: "config", Data: []byte(clear[1])})
	require.NoError(t, err)
	require.Equal(t, "node-1", config.Hostname)
	require.Equal(t, "controlplane", config.MachineType)
	client, err := talos.ParseTalosconfig([]byte(clear[0]), "")
	require.NoError(t, err)
	require.NoError(t, client.MatchesConfig(config))
	all, err := clientconfig.FromString(clear[0])
	require.NoError(t, err)
	require.Len(t, all.Contexts, 1)

	// Nothing of the secrets is in what travels in clear.
	data, err := json.Marshal(inputs)
	require.NoError(t, err)
	require.NotContains(t, string(data), all.Contexts[client.Context].Key)
}

// addContext adds the contexts of one talosconfig to another.
func addContext(t *testing.T, to, from string) {
	t.Helper()
	a, err := clientconfig.Open(to)
	require.NoError(t, err)
	b, err := clientconfig.Open(from)
	require.NoError(t, err)
	for name, context := range b.Contexts {
		a.Contexts[name] = context
	}
	data, err := a.Bytes()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o600))
}

func TestRenderReportsTogether(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 3)
	dir := filepath.Dir(path)
	other := t.TempDir()
	lottest.Cluster(t, other, "other")
	foreign, err := os.ReadFile(filepath.Join(other, "talosconfig"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "talosconfig"), foreign, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "worker.yaml"), []byte("machine: {kind: x}\n"), 0o600))

	l, err := lot.Load(path)
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.Nil(t, rendered)
	var problems lot.Problems
	require.True(t, errors.As(err, &problems))
	require.Len(t, problems, 2, "the shared worker config is reported once:\n%v", err)
	require.Equal(t, "cluster.talosconfig", problems[0].Field)
	require.Contains(t, problems[0].Message, "another cluster")
	require.Equal(t, "defaults.config", problems[1].Field)
	require.NotZero(t, problems[1].Line)
}

func TestRenderWithoutContext(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 1)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "talosconfig: talosconfig", "talosconfig: talosconfig\n  context: two", 1)), 0o600))
	l, err := lot.Load(path)
	require.NoError(t, err)
	_, err = l.Render(t.Context())
	require.ErrorContains(t, err, `the talosconfig has no context "two"; name one of its contexts: one`)
}

func TestSealFails(t *testing.T) {
	t.Parallel()
	l, err := lot.Load(lottest.Lot(t, "one", 1))
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	broken := errors.New("no recipient")
	inputs, err := rendered.Seal(func([]byte) (string, error) { return "", broken })
	require.ErrorIs(t, err, broken)
	require.Nil(t, inputs)
}
