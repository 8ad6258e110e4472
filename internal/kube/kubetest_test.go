package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/kubeapi"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
)

// server starts the lab's Kubernetes API for a cluster of its own.
func server(t *testing.T) *kubeapi.API {
	t.Helper()
	cluster, err := talosnode.NewCluster("one", "https://192.0.2.10:6443")
	require.NoError(t, err)
	cert, key := cluster.KubernetesCA()
	api, err := kubeapi.Start(t.Context(), "127.0.0.1:0", cert, key)
	require.NoError(t, err)
	t.Cleanup(func() { _ = api.Close() })
	return api
}
