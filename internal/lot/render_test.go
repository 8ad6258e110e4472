package lot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
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
	want := l.Nodes[0].Run
	want.ControlPlane = true // what the config makes of it
	require.Equal(t, want, inputs[0].Node)
	require.Len(t, clear, 3, "the talosconfig and two configs")

	// What the workers open must be whole: the config under its name, and a
	// talosconfig of the one context alone.
	shared, err := talos.ParseBundle([]byte(clear[1]))
	require.NoError(t, err)
	config, err := talos.Render(shared.Input(talos.Bundle{}, inputs[0].Node.Name, inputs[0].Node.Values(0)))
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

// TestSealFails: whichever part cannot be sealed, nothing travels, and the
// part is named.
func TestSealFails(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 1)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	edited := strings.Replace(string(text), "talosconfig: talosconfig", "talosconfig: talosconfig\n  kubeconfig: kubeconfig", 1)
	edited = strings.Replace(edited, "  - name: node-1\n", "  - name: node-1\n    values: [{name: rack, value: \"9\"}]\n", 1)
	require.NoError(t, os.WriteFile(path, []byte(edited), 0o600))
	l, err := lot.Load(path)
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	broken := errors.New("no recipient")
	for i, want := range []string{
		"the talosconfig cannot be sealed: no recipient",
		"the kubeconfig cannot be sealed: no recipient",
		"the machine config of node node-1 cannot be sealed: no recipient",
		"the patches of node node-1 cannot be sealed: no recipient",
	} {
		calls := 0
		inputs, err := rendered.Seal(func([]byte) (string, error) {
			if calls++; calls > i {
				return "", broken
			}
			return "sealed", nil
		})
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, broken)
		require.Nil(t, inputs)
	}
}

// TestSealOnce: what nodes share is sealed once, what is a node's own apart,
// and a worker makes of it what the starter has checked.
func TestSealOnce(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 4)
	dir := filepath.Dir(path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	edited := strings.Replace(string(text), "defaults:\n", "defaults:\n  patches: [shared.yaml]\n  values: [{name: rack, value: \"7\"}]\n", 1)
	edited = strings.Replace(edited, "  - name: node-3\n", "  - name: node-3\n    patches: [own.yaml]\n    values: [{name: rack, value: \"9\"}]\n", 1)
	path2 := filepath.Join(dir, "rack.yaml")
	require.NoError(t, os.WriteFile(path2, []byte(edited), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "shared.yaml"), []byte("machine:\n  nodeLabels: {rack: \"${ironlot.rack}\", node: \"${ironlot.name}\"}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "own.yaml"), []byte("machine:\n  nodeLabels: {own: \"${ironlot.server.name}\"}\n"), 0o600))

	l, err := lot.Load(path2)
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	var clear []string
	inputs, err := rendered.Seal(func(plaintext []byte) (string, error) {
		clear = append(clear, string(plaintext))
		return fmt.Sprint(len(clear) - 1), nil
	})
	require.NoError(t, err)
	require.Len(t, clear, 4, "the talosconfig, two bases, one node's own")
	open := func(i string) talos.Bundle {
		if i == "" {
			return talos.Bundle{}
		}
		n, err := strconv.Atoi(i)
		require.NoError(t, err)
		b, err := talos.ParseBundle([]byte(clear[n]))
		require.NoError(t, err)
		return b
	}
	for i, in := range inputs {
		config, err := talos.Render(open(in.Sealed.Config).Input(open(in.Sealed.Own), in.Node.Name, in.Node.Values(0)))
		require.NoError(t, err)
		require.Contains(t, string(config.Bytes), "node: "+in.Node.Name)
		rack := "7"
		if i == 2 {
			rack = "9"
			require.Contains(t, string(config.Bytes), "own: metal-3")
		}
		require.Contains(t, string(config.Bytes), `rack: "`+rack+`"`)
		require.Equal(t, i == 2, in.Sealed.Own != "")
	}
	require.Equal(t, inputs[1].Sealed.Config, inputs[2].Sealed.Config)
	require.NotEqual(t, inputs[0].Sealed.Config, inputs[1].Sealed.Config)
}

// TestExpiredTalosconfig is known before anything is touched.
func TestExpiredTalosconfig(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 1)
	lottest.ClusterOf(t, filepath.Dir(path), "one", time.Now().AddDate(-2, 0, 0))
	l, err := lot.Load(path)
	require.NoError(t, err)
	_, err = l.Render(t.Context())
	var problems lot.Problems
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems, 1)
	require.Equal(t, "cluster.talosconfig", problems[0].Field)
	require.Regexp(t, "^talosconfig context \"one\": the client certificate expired at 20[0-9-]+T[0-9:]+Z; make a new one with `talosctl config new` or `talosctl gen config`$", problems[0].Message)
}

// TestDigestTellsChangedConfigs: sealed anew everything looks different, and
// the digest of what has not changed is the same.
func TestDigestTellsChangedConfigs(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 2)
	dir := filepath.Dir(path)
	times := 0
	sealed := func() []run.NodeInput {
		l, err := lot.Load(path)
		require.NoError(t, err)
		rendered, err := l.Render(t.Context())
		require.NoError(t, err)
		inputs, err := rendered.Seal(func([]byte) (string, error) { times++; return fmt.Sprint(times), nil })
		require.NoError(t, err)
		return inputs
	}
	was := sealed()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	edited := strings.Replace(string(text), "talosconfig: talosconfig", "talosconfig: talosconfig\n  kubeconfig: kubeconfig", 1)
	require.NoError(t, os.WriteFile(path, []byte(edited), 0o600))
	for i, is := range sealed() {
		require.NotEqual(t, was[i].Sealed.Config, is.Sealed.Config)
		require.NotEmpty(t, is.Sealed.Kubeconfig)
		require.True(t, was[i].Sealed.SameConfig(is.Sealed))
	}
	config, err := os.ReadFile(filepath.Join(dir, "worker.yaml"))
	require.NoError(t, err)
	changed := strings.Replace(string(config), "machine:\n", "machine:\n    sysctls: {kernel.pid_max: \"65536\"}\n", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "worker.yaml"), []byte(changed), 0o600))
	is := sealed()
	require.True(t, was[0].Sealed.SameConfig(is[0].Sealed), "the control plane's config is another file")
	require.False(t, was[1].Sealed.SameConfig(is[1].Sealed))
}
