package talos_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/talos"
)

func TestApplyRefusals(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	store := &talosnode.MemoryStore{}
	node := start(t, talosnode.Options{Store: store})
	sees(t, node.Addr(), talos.Maintenance)

	for name, tc := range map[string]struct {
		config []byte
		want   string
	}{
		"broken":      {[]byte("machine: ["), "was not sent"},
		"no v1alpha1": {[]byte("apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"), "was not sent"},
		"refused":     {bytes.Replace(c.ControlPlane, []byte("type: controlplane"), []byte("type: worker"), 1), "issuing Talos API CA key is not allowed on non-controlplane nodes"},
	} {
		outcome, err := talos.Apply(t.Context(), node.Addr(), tc.config)
		require.Equal(t, talos.Refused, outcome, name)
		require.ErrorContains(t, err, tc.want, name)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), name)
		require.NotContains(t, err.Error(), "\n", "one sentence")
		require.False(t, talos.AlreadyConfigured(err), name)
		for _, secret := range c.Secrets() {
			require.NotContains(t, err.Error(), secret[:8], name)
		}
	}
	sees(t, node.Addr(), talos.Maintenance)
	saved, err := store.Load()
	require.NoError(t, err)
	require.Nil(t, saved, "no refused config reaches the disk")

	for name, addr := range map[string]string{
		"resetting": start(t, talosnode.Options{Delays: talosnode.Delays{Boot: time.Hour}}).Addr(),
		"not TLS":   server(t, func(c net.Conn) { _ = c.Close() }),
	} {
		outcome, err := talos.Apply(t.Context(), addr, c.Worker)
		require.Equal(t, talos.Refused, outcome, name)
		require.ErrorContains(t, err, "was not sent", name)
		require.Equal(t, fault.Transient, fault.ClassOf(err), name)
	}
}

func TestApplyLostAnswer(t *testing.T) {
	t.Parallel()
	r := rendered(t)
	node := start(t, talosnode.Options{Faults: talosnode.Faults{AnswerLost: true}})
	sees(t, node.Addr(), talos.Maintenance)
	outcome, err := talos.Apply(t.Context(), node.Addr(), r.Bytes)
	require.Equal(t, talos.Unknown, outcome)
	require.Equal(t, fault.Transient, fault.ClassOf(err))

	sees(t, node.Addr(), talos.Configured) // the config was taken all the same
	c, err := talos.Dial(t.Context(), node.Addr(), talosconfig(t, cluster(t)))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	sum, err := c.ConfigSHA256(t.Context())
	require.NoError(t, err)
	require.Equal(t, r.SHA256, sum)
}

func TestApplyHangingNode(t *testing.T) {
	t.Parallel()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	node := start(t, talosnode.Options{
		Delays: talosnode.Delays{Answer: time.Hour},
		Hold: func(point string) {
			if point == "config taken" {
				giveUp()
			}
		},
	})
	sees(t, node.Addr(), talos.Maintenance)
	outcome, err := talos.Apply(ctx, node.Addr(), rendered(t).Bytes)
	require.Equal(t, talos.Unknown, outcome, "a node that hangs may have taken the config")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
}
