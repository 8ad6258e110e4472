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
	"github.com/ironlot/ironlot/internal/talos"
)

// TestWaitReadyNamesWhatIsMissing: a node that never becomes Ready is told by
// what keeps it from that.
func TestWaitReadyNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	client, err := talos.ParseTalosconfig(cluster(t).Talosconfig, "")
	require.NoError(t, err)
	controlPlane, err := talos.Render(talos.RenderInput{Base: talos.Named{Name: "cp.yaml", Data: cluster(t).ControlPlane}, Hostname: "node-1"})
	require.NoError(t, err)
	never := time.Hour
	for name, c := range map[string]struct {
		opts talosnode.Options
		cp   bool
		want string
	}{
		"time":          {talosnode.Options{Delays: talosnode.Delays{Time: never}}, false, "time: time is not synced"},
		"services":      {talosnode.Options{Delays: talosnode.Delays{Services: never}}, false, "services: cri not healthy, kubelet not running"},
		"kubelet":       {talosnode.Options{Faults: talosnode.Faults{KubeletCrash: true}}, false, "services: kubelet not running"},
		"etcd":          {talosnode.Options{Faults: talosnode.Faults{NeverJoins: true}}, true, "services: etcd not running"},
		"registration":  {talosnode.Options{Delays: talosnode.Delays{Register: never}}, false, `node: "node-1" is not registered in Kubernetes`},
		"not ready":     {talosnode.Options{Delays: talosnode.Delays{Ready: never}}, false, `node: "node-1" is not Ready`},
		"worker closed": {talosnode.Options{Faults: talosnode.Faults{NeverJoins: true}}, false, "reached trustd of a control plane (port 50001)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.opts.Faults.Inject = rendered(t).Bytes
			if c.cp {
				c.opts.Faults.Inject = controlPlane.Bytes
			}
			n := start(t, c.opts)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// The wait ends when the reason is named.
			_, err := talos.WaitReady(ctx, n.Addr(), client, talos.ReadyOptions{Worker: !c.cp, Report: func(unmet []string) {
				if slices.ContainsFunc(unmet, func(s string) bool { return strings.Contains(s, c.want) }) {
					cancel()
				}
			}})
			require.Equal(t, fault.Transient, fault.ClassOf(err))
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, ctx.Err(), context.Canceled, "it was named in time")
		})
	}
}
