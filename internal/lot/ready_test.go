package lot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
)

const withKubeconfig = "  talosconfig: talosconfig\n  kubeconfig: kubeconfig\n"

// kubernetesLot writes a lot of two nodes with a kubeconfig and the given
// `ready` of the defaults.
func kubernetesLot(t *testing.T, ready string) string {
	t.Helper()
	path := lottest.Lot(t, "one", 2)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	text := strings.Replace(string(data), "  talosconfig: talosconfig\n", withKubeconfig, 1)
	text = strings.Replace(text, "defaults:\n", "defaults:\n  ready: "+ready+"\n", 1)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestSecondOpinionOfKubernetes(t *testing.T) {
	t.Parallel()
	path := kubernetesLot(t, `{providerID: "metal://${ironlot.zone}/${ironlot.server.id}", labels: [{name: rack, value: "12"}, {name: node-role.kubernetes.io/storage}]}`)
	l, err := lot.Load(path)
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	for _, warning := range rendered.Warnings {
		require.NotContains(t, warning, "kubeconfig")
	}
	var sealed []string
	inputs, err := rendered.Seal(func(plain []byte) (string, error) {
		sealed = append(sealed, string(plain))
		return "sealed " + strings.Repeat("i", len(sealed)), nil
	})
	require.NoError(t, err)
	in := inputs[1]
	require.Equal(t, map[string]string{"rack": "12", "node-role.kubernetes.io/storage": ""}, in.Node.Ready.Labels)
	require.Equal(t, "metal://fr-par-2/00000000-0000-4000-8000-000000000002", in.Node.Fill(in.Node.Ready.ProviderID, 0))
	require.Equal(t, inputs[0].Sealed.Kubeconfig, in.Sealed.Kubeconfig)
	require.Contains(t, sealed[strings.Count(in.Sealed.Kubeconfig, "i")-1], "client-key-data")

	// It is kept once for the lot, and travels whole to each node.
	shared := run.LotInput{Lot: "one", Nodes: inputs}.Share()
	require.NotEqual(t, in.Sealed.Kubeconfig, shared.Nodes[1].Sealed.Kubeconfig)
	require.Equal(t, in, shared.Node(1))
}

func TestKubeconfigOfAnotherCluster(t *testing.T) {
	t.Parallel()
	path, other := kubernetesLot(t, "{providerID: any}"), t.TempDir()
	lottest.Cluster(t, other, "other")
	data, err := os.ReadFile(filepath.Join(other, "kubeconfig"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "kubeconfig"), data, 0o600))
	l, err := lot.Load(path)
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	require.Contains(t, rendered.Warnings, "the kubeconfig does not trust the CA of the configs' cluster.ca: make sure that it is of the cluster which the nodes join")
}

func TestKubeconfigThatCannotTravel(t *testing.T) {
	t.Parallel()
	path := kubernetesLot(t, "{providerID: any}")
	kubeconfig := filepath.Join(filepath.Dir(path), "kubeconfig")
	data, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	insecure := strings.Replace(string(data), "    server:", "    insecure-skip-tls-verify: true\n    server:", 1)
	require.NoError(t, os.WriteFile(kubeconfig, []byte(insecure), 0o600))
	l, err := lot.Load(path)
	require.NoError(t, err)
	_, err = l.Render(t.Context())
	require.ErrorContains(t, err, `cluster.kubeconfig: kubeconfig context "admin@lab": insecure-skip-tls-verify would take anybody's word for the node; put the cluster's CA into certificate-authority-data and remove the line`)
}
