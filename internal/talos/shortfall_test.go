package talos_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// external is a worker that waits for a cloud controller manager, in the two
// ways in which a config says so.
func external(t *testing.T, patches ...talos.Named) *talos.Rendered {
	t.Helper()
	if patches == nil {
		patches = []talos.Named{patch("external.yaml", "machine:\n  kubelet:\n    extraArgs:\n      cloud-provider: external\n")}
	}
	r, err := talos.Render(talos.RenderInput{Base: worker(t), Patches: patches, Hostname: "node-1"})
	require.NoError(t, err)
	return r
}

func TestCloudProviderOfAConfig(t *testing.T) {
	t.Parallel()
	require.True(t, external(t).CloudProvider)
	require.True(t, external(t, patch("cluster.yaml", "cluster:\n  externalCloudProvider:\n    enabled: true\n")).CloudProvider)
	require.False(t, rendered(t).CloudProvider)
}

// TestShortfallsAreNamed: a node that waits for what is installed into the
// cluster is told by that, and is not done.
func TestShortfallsAreNamed(t *testing.T) {
	t.Parallel()
	cfg := talosconfig(t, cluster(t))
	for name, c := range map[string]struct {
		faults talosnode.Faults
		config *talos.Rendered
		accept []run.Shortfall
		want   string
	}{
		"no CNI":         {talosnode.Faults{NoCNI: true}, rendered(t), nil, `node: "node-1" is not Ready: no CNI has put its config into /etc/cni/net.d`},
		"ordering trap":  {talosnode.Faults{NoCNI: true}, external(t), nil, "whose taint node.cloudprovider.kubernetes.io/uninitialized keeps the CNI's pods away"},
		"uninitialized":  {talosnode.Faults{Uninitialized: true}, external(t), []run.Shortfall{run.NoCNI}, "has no label of a cloud controller manager, so it may still have the taint node.cloudprovider.kubernetes.io/uninitialized"},
		"other accepted": {talosnode.Faults{NoCNI: true}, rendered(t), []run.Shortfall{run.Uninitialized}, "no CNI has put its config"},
		// What the lot accepts is no excuse for anything else.
		"kubelet": {talosnode.Faults{KubeletCrash: true}, rendered(t), run.Shortfalls(), "services: kubelet not running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.faults.Inject = c.config.Bytes
			node := start(t, talosnode.Options{Faults: c.faults})
			ctx, cancel := context.WithCancel(within(t, time.Minute))
			_, err := talos.WaitReady(ctx, node.Addr(), cfg, talos.ReadyOptions{
				Accept: c.accept, CloudProvider: c.config.CloudProvider,
				Report: func(unmet []string) {
					if slices.ContainsFunc(unmet, func(s string) bool { return strings.Contains(s, c.want) }) {
						cancel()
					}
				},
			})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, fault.Transient, fault.ClassOf(err))
		})
	}
}

// TestShortfallsThatAreAccepted: the node is done, and what is missing is
// told.
func TestShortfallsThatAreAccepted(t *testing.T) {
	t.Parallel()
	cfg := talosconfig(t, cluster(t))
	for name, c := range map[string]struct {
		faults talosnode.Faults
		accept []run.Shortfall
		want   []run.Shortfall
	}{
		"no CNI":                {talosnode.Faults{NoCNI: true, Uninitialized: true}, run.Shortfalls(), []run.Shortfall{run.NoCNI}},
		"uninitialized":         {talosnode.Faults{Uninitialized: true}, run.Shortfalls(), []run.Shortfall{run.Uninitialized}},
		"nothing is missing":    {talosnode.Faults{}, run.Shortfalls(), nil},
		"initialized by labels": {talosnode.Faults{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.faults.Inject = external(t).Bytes
			node := start(t, talosnode.Options{Faults: c.faults})
			ready, err := talos.WaitReady(within(t, time.Minute), node.Addr(), cfg, talos.ReadyOptions{
				Accept: c.accept, CloudProvider: true, Hold: 100 * time.Millisecond,
			})
			require.NoError(t, err)
			require.Equal(t, c.want, ready.Missing)
			require.Equal(t, "node-1", ready.NodeName)
		})
	}
}
