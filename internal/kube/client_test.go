package kube_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/kube"
	"github.com/ironlot/ironlot/internal/testenv"
)

// ask asks for the node worker-1 with a kubeconfig.
func ask(t *testing.T, kubeconfig []byte) (*corev1.Node, error) {
	t.Helper()
	k, err := kube.Parse(kubeconfig)
	require.NoError(t, err)
	client, err := kube.NewClient(k)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return client.Node(ctx, "worker-1")
}

func TestNode(t *testing.T) {
	t.Parallel()
	api := server(t)
	admin, err := api.Kubeconfig()
	require.NoError(t, err)
	_, err = ask(t, admin)
	require.ErrorIs(t, err, kube.ErrNoNode)

	api.Edit("worker-1", func(n *corev1.Node) { *n = *readyNode(nil) })
	node, err := ask(t, admin)
	require.NoError(t, err)
	require.Equal(t, systemUUID, node.Status.NodeInfo.SystemUUID)
	require.Equal(t, "metal://zone/server", node.Spec.ProviderID)
	require.Equal(t, corev1.ConditionTrue, node.Status.Conditions[0].Status)

	api.Break(true)
	_, err = ask(t, admin)
	require.Equal(t, fault.Transient, fault.ClassOf(err))
	require.EqualError(t, err, "the Kubernetes API at "+api.URL()+" answers with status 503")
}

func TestNodeOfAnAPIThatIsGone(t *testing.T) {
	t.Parallel()
	gone := "https://" + testenv.Nobody()
	_, err := ask(t, edit(t, server(t), func(f *file) { f.Clusters[0].Cluster["server"] = gone }))
	require.Equal(t, fault.Transient, fault.ClassOf(err))
	require.EqualError(t, err, "the Kubernetes API at "+gone+" does not answer (dial: connect: connection refused)")
}

func TestNodeForAStranger(t *testing.T) {
	t.Parallel()
	api, other := server(t), server(t)
	reader, err := api.KubeconfigFor("somebody", "a-group")
	require.NoError(t, err)
	_, err = ask(t, reader)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.ErrorContains(t, err, "does not let the kubeconfig's user read nodes (403); allow the kubeconfig's user to get nodes")

	// A kubeconfig of another cluster, with this one's address.
	foreign := edit(t, other, func(f *file) { f.Clusters[0].Cluster["server"] = api.URL() })
	_, err = ask(t, foreign)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.ErrorContains(t, err, "is not one that the kubeconfig trusts; use the kubeconfig of the cluster that the nodes join")

	// The right cluster, and a user that it does not know.
	admin, err := api.Kubeconfig()
	require.NoError(t, err)
	ours := parse(t, admin)
	unknown := edit(t, other, func(f *file) { f.Clusters[0].Cluster = ours.Clusters[0].Cluster })
	_, err = ask(t, unknown)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.ErrorContains(t, err, "does not know the kubeconfig's user (401)")
}
