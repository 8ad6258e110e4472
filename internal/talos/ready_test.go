package talos_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// A watch of a resource that does not exist yet begins with its absence, in
// the resource's own type: readiness is built on that.
func TestWatchOfMissingResource(t *testing.T) {
	t.Parallel()
	node := configured(t, talosnode.Options{})
	sees(t, node.Addr(), talos.Configured)
	c, err := talos.Dial(t.Context(), node.Addr(), talosconfig(t, cluster(t)))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	events := make(chan state.Event)
	require.NoError(t, c.State().Watch(t.Context(), k8s.NewNodename(k8s.NamespaceName, "missing").Metadata(), events))
	event := <-events
	require.Equal(t, state.Destroyed, event.Type)
	require.IsType(t, &k8s.Nodename{}, event.Resource)
}

func TestWaitReadyGivesUp(t *testing.T) {
	t.Parallel()
	cfg := talosconfig(t, cluster(t))

	t.Run("in time, with what is missing", func(t *testing.T) {
		t.Parallel()
		node := configured(t, talosnode.Options{Faults: talosnode.Faults{KubeletCrash: true}})
		ctx, report := untilReported(t, "stage: booting", "services: kubelet not running")
		_, err := talos.WaitReady(ctx, node.Addr(), cfg, talos.ReadyOptions{Report: report})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "stage: booting")
		require.ErrorContains(t, err, "services: kubelet not running")
		require.Equal(t, fault.Transient, fault.ClassOf(err))
	})
	t.Run("on another cluster's node", func(t *testing.T) {
		t.Parallel()
		other, err := talosnode.NewCluster("other", "https://192.0.2.20:6443")
		require.NoError(t, err)
		trustd := talosnode.NewTrustd()
		require.NoError(t, trustd.Serve(other.ControlPlane))
		node := start(t, talosnode.Options{Trustd: trustd, Faults: talosnode.Faults{Inject: other.Worker}})
		_, err = talos.WaitReady(within(t, 20*time.Second), node.Addr(), cfg, talos.ReadyOptions{ForeignGrace: time.Millisecond})
		require.ErrorIs(t, err, talos.ErrForeignIdentity)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	})
	t.Run("not on a node in maintenance: it is ready and not Ready", func(t *testing.T) {
		t.Parallel()
		node := start(t, talosnode.Options{})
		ctx, report := untilReported(t, "not of this cluster")
		_, err := talos.WaitReady(ctx, node.Addr(), cfg, talos.ReadyOptions{Report: report})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "not of this cluster")
	})
}

// A node that loses its power while it is held Ready starts again.
func TestWaitReadyHoldsAndReconnects(t *testing.T) {
	t.Parallel()
	cfg := talosconfig(t, cluster(t))
	opts := talosnode.Options{Faults: talosnode.Faults{Inject: rendered(t).Bytes}}
	first := start(t, opts)

	reports := make(chan []string, 100)
	type result struct {
		ready run.NodeReady
		err   error
	}
	done := make(chan result, 1)
	go func() {
		ready, err := talos.WaitReady(within(t, 30*time.Second), first.Addr(), cfg, talos.ReadyOptions{
			Hold: time.Second, Report: func(unmet []string) { reports <- unmet },
		})
		done <- result{ready, err}
	}()
	await := func(want func([]string) bool) {
		t.Helper()
		for {
			select {
			case unmet := <-reports:
				if want(unmet) {
					return
				}
			case r := <-done:
				t.Fatalf("ended too early: %v", r.err)
			}
		}
	}
	await(func(unmet []string) bool { return len(unmet) == 0 }) // Ready, now held
	first.Stop()
	await(func(unmet []string) bool { return len(unmet) > 0 && strings.HasPrefix(unmet[0], "api: ") })

	opts.Addr, opts.Trustd = first.Addr(), talosnode.NewTrustd()
	require.NoError(t, opts.Trustd.Serve(cluster(t).ControlPlane))
	second, err := talosnode.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(second.Stop)
	await(func(unmet []string) bool { return len(unmet) == 0 })
	r := <-done
	require.NoError(t, r.err)
	require.Equal(t, "node-1", r.ready.NodeName)
}
