package lot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/lot/lottest"
)

// filed is a lot of three nodes whose file has other texts in it.
func filed(t *testing.T, changes ...string) string {
	t.Helper()
	path := lottest.Lot(t, "one", 3)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(changes...).Replace(string(text))), 0o600))
	return path
}

// fieldsOf lists where the mistakes are.
func fieldsOf(t *testing.T, err error) []string {
	t.Helper()
	var problems lot.Problems
	require.True(t, errors.As(err, &problems), "%v", err)
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	return fields
}

// TestCheckTellsAllTogether: mistakes of the file, of a config and of the
// talosconfig, with the warnings, in one go.
func TestCheckTellsAllTogether(t *testing.T) {
	t.Parallel()
	path := filed(t, "zone: fr-par-2", "zone: fr-par-9", "name: node-3", "name: node-3\n    systemDisk: {serial: S1, smallest: true}")
	other := t.TempDir()
	lottest.Cluster(t, other, "other")
	foreign, err := os.ReadFile(filepath.Join(other, "talosconfig"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "talosconfig"), foreign, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "worker.yaml"), []byte("machine: {kind: x}\n"), 0o600))

	l, rendered, err := lot.Check(t.Context(), path, []string{"node-1", "node-2", "node-3"})
	require.Nil(t, l)
	require.Equal(t, []string{"zone", "cluster.talosconfig", "defaults.config", "nodes[2].systemDisk"}, fieldsOf(t, err))
	require.Contains(t, strings.Join(rendered.Warnings, "\n"), "the image has no digest")
}

// TestCheckSaysNoMoreThanIsTrue: what follows from a mistake that is told already
// is none of its own.
func TestCheckSaysNoMoreThanIsTrue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes []string
		want    []string
	}{
		"no config":          {[]string{"config: worker.yaml", "config: none.yaml"}, []string{"defaults.config"}},
		"no talosconfig":     {[]string{"talosconfig: talosconfig", "talosconfig: none"}, []string{"cluster.talosconfig"}},
		"no context":         {[]string{"talosconfig: talosconfig", "talosconfig: talosconfig\n  context: [a]"}, []string{"cluster.context"}},
		"a name of no host":  {[]string{"name: node-2", "name: Node_2"}, []string{"nodes[1].name"}},
		"no server":          {[]string{"server: {id: 00000000-0000-4000-8000-000000000002, name: metal-2}", "values: []"}, []string{"nodes[1].server"}},
		"a key mistyped":     {[]string{"config: controlplane.yaml", "confg: controlplane.yaml"}, []string{"nodes[0].confg"}},
		"the lot's name":     {[]string{"name: one", "name: One"}, []string{"name"}},
		"a patch is missing": {[]string{"config: controlplane.yaml", "config: controlplane.yaml\n    patches: [none.yaml]"}, []string{"nodes[0].patches[0]"}},
	} {
		_, _, err := lot.Check(t.Context(), filed(t, c.changes...), nil)
		require.Equal(t, c.want, fieldsOf(t, err), name)
	}
}

// TestCheckOfNamedNodes: a name that no node has is told with the file's mistakes.
func TestCheckOfNamedNodes(t *testing.T) {
	t.Parallel()
	_, _, err := lot.Check(t.Context(), filed(t, "zone: fr-par-2", "zone: fr-par-9"), []string{"node-1", "node-7"})
	require.Equal(t, []string{"zone"}, fieldsOf(t, err))
	require.ErrorContains(t, err, `has no node "node-7"`)
	_, _, err = lot.Check(t.Context(), filed(t, "name: node-2", "name: Node_2"), []string{"node-2"})
	require.NotContains(t, err.Error(), "has no node")
	l, rendered, err := lot.Check(t.Context(), filed(t), []string{"node-2"})
	require.NoError(t, err)
	require.Len(t, l.Nodes, 1)
	require.NotEmpty(t, rendered.Warnings)
	_, _, err = lot.Check(t.Context(), filepath.Join(t.TempDir(), "none.yaml"), nil)
	require.ErrorContains(t, err, "the file does not exist")
}

// TestCheckTellsEveryPatch: one that is wrong hides no other.
func TestCheckTellsEveryPatch(t *testing.T) {
	t.Parallel()
	path := filed(t, "config: controlplane.yaml", "config: controlplane.yaml\n    patches: [a.yaml, b.yaml, c.yaml]")
	for file, text := range map[string]string{
		"a.yaml": "machine: {sysctls: {a: '${ironlot.nothing}'}}\n", "b.yaml": "machine: {kind: x}\n", "c.yaml": "machine: {sysctls: {a: b}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), file), []byte(text), 0o600))
	}
	_, _, err := lot.Check(t.Context(), path, nil)
	require.ErrorContains(t, err, "a.yaml")
	require.ErrorContains(t, err, "b.yaml")
	require.NotContains(t, err.Error(), "c.yaml")
}
