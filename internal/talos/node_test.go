package talos_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/talos"
	"github.com/ironlot/ironlot/internal/testenv"
)

func start(t *testing.T, opts talosnode.Options) *talosnode.Node {
	t.Helper()
	opts.Addr = testenv.Nobody()
	if opts.Trustd == nil {
		opts.Trustd = talosnode.NewTrustd()
		require.NoError(t, opts.Trustd.Serve(cluster(t).ControlPlane))
	}
	n, err := talosnode.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(n.Stop)
	return n
}

// configured is a node that boots with the cluster's worker config.
func configured(t *testing.T, opts talosnode.Options) *talosnode.Node {
	t.Helper()
	opts.Faults.Inject = rendered(t).Bytes
	return start(t, opts)
}

func rendered(t *testing.T) *talos.Rendered {
	t.Helper()
	r, err := talos.Render(talos.RenderInput{Base: worker(t), Hostname: "node-1"})
	require.NoError(t, err)
	return r
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// untilReported is a context that ends, as if time were up, once all of these
// were reported as missing together.
func untilReported(t *testing.T, texts ...string) (context.Context, func(unmet []string)) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(within(t, time.Minute))
	return ctx, func(unmet []string) {
		all := strings.Join(unmet, "; ")
		for _, text := range texts {
			if !strings.Contains(all, text) {
				return
			}
		}
		cancel(context.DeadlineExceeded)
	}
}

// sees waits until a look at the node shows a state.
func sees(t *testing.T, addr string, want talos.APIState) talos.Observation {
	t.Helper()
	var got talos.Observation
	require.Eventually(t, func() bool {
		var err error
		got, err = talos.Probe(t.Context(), addr)
		require.NoError(t, err)
		return got.State == want
	}, 15*time.Second, 5*time.Millisecond)
	return got
}

func TestFromMaintenanceToReady(t *testing.T) {
	t.Parallel()
	r, cfg := rendered(t), talosconfig(t, cluster(t))
	node := start(t, talosnode.Options{Delays: talosnode.Delays{Linger: 50 * time.Millisecond, State: 50 * time.Millisecond, Services: 3 * time.Second}})
	sees(t, node.Addr(), talos.Maintenance)

	outcome, err := talos.Apply(t.Context(), node.Addr(), r.Bytes)
	require.NoError(t, err)
	require.Equal(t, talos.Accepted, outcome)

	var mu sync.Mutex
	var reports []string
	ready, err := talos.WaitReady(within(t, 30*time.Second), node.Addr(), cfg, talos.ReadyOptions{
		Hold: 50 * time.Millisecond,
		Report: func(unmet []string) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, strings.Join(unmet, "; "))
		},
	})
	require.NoError(t, err)
	require.Equal(t, "node-1", ready.NodeName)
	require.Equal(t, "v1.13.8", ready.TalosVersion)
	require.WithinDuration(t, time.Now(), ready.At, time.Minute)
	mu.Lock()
	defer mu.Unlock()
	all := strings.Join(reports, "\n")
	require.Contains(t, all, "services: cri not healthy, kubelet not running")
	require.Contains(t, all, `nodeReady: node "node-1" status is not available yet`)
	require.Empty(t, reports[len(reports)-1], "nothing is missing in the end")

	c, err := talos.Dial(t.Context(), node.Addr(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	version, err := c.Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, talos.Version{Tag: "v1.13.8", Build: "lab-simulated", Platform: "metal"}, version)
	status, err := c.MachineStatus(t.Context())
	require.NoError(t, err)
	require.Equal(t, runtime.MachineStageRunning, status.Stage)
	sum, err := c.ConfigSHA256(t.Context())
	require.NoError(t, err)
	require.Equal(t, r.SHA256, sum, "the node runs the lot's config")

	// A second apply never reaches a configured node.
	outcome, err = talos.Apply(t.Context(), node.Addr(), r.Bytes)
	require.Equal(t, talos.Refused, outcome)
	require.True(t, talos.AlreadyConfigured(err), "%v", err)
}
