// Package lottest makes folders with a lot and the configs of a cluster of
// its own, for tests.
package lottest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/kubeapi"
)

// Cluster writes controlplane.yaml, worker.yaml, talosconfig and kubeconfig of
// a new cluster into a directory. No Kubernetes API answers the kubeconfig.
func Cluster(t testing.TB, dir, name string) {
	t.Helper()
	ClusterOf(t, dir, name, time.Now())
}

// ClusterOf is Cluster with the time at which the configs were made: the
// talosconfig's certificate is good for a year, the CAs for ten.
func ClusterOf(t testing.TB, dir, name string, made time.Time) {
	t.Helper()
	bundle, err := secrets.NewBundle(secrets.NewFixedClock(made), nil)
	require.NoError(t, err)
	input, err := generate.NewInput(name, "https://10.0.0.1:6443", "1.35.0", generate.WithSecretsBundle(bundle))
	require.NoError(t, err)
	for file, kind := range map[string]machine.Type{"controlplane.yaml": machine.TypeControlPlane, "worker.yaml": machine.TypeWorker} {
		config, err := input.Config(kind)
		require.NoError(t, err)
		data, err := config.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), data, 0o600))
	}
	client, err := input.Talosconfig()
	require.NoError(t, err)
	data, err := client.Bytes()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "talosconfig"), data, 0o600))
	api, err := kubeapi.Start(t.Context(), "127.0.0.1:0", bundle.Certs.K8s.Crt, bundle.Certs.K8s.Key)
	require.NoError(t, err)
	data, err = api.Kubeconfig()
	require.NoError(t, errors.Join(err, api.Close()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubeconfig"), data, 0o600))
}

// Lot writes a lot of simulated servers with the configs of a new cluster
// and gives the lot file's path. The first node is a control plane.
func Lot(t testing.TB, name string, servers int) string {
	t.Helper()
	dir := t.TempDir()
	Cluster(t, dir, name)
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: ironlot.dev/v1
kind: Lot
name: %s
zone: fr-par-2
lab: true
image:
  url: http://127.0.0.1:9/metal-amd64.raw.zst
cluster:
  talosconfig: talosconfig
defaults:
  config: worker.yaml
  systemDisk: {smallest: true}
nodes:
`, name)
	for i := 1; i <= servers; i++ {
		fmt.Fprintf(&b, "  - name: node-%d\n    server: {id: 00000000-0000-4000-8000-%012d, name: metal-%d}\n", i, i, i)
		if i == 1 {
			b.WriteString("    config: controlplane.yaml\n    secondaryDisks: keep\n")
		}
	}
	path := filepath.Join(dir, "lot.yaml")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}
