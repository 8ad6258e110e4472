package talosnode_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	goruntime "runtime"
	"syscall"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/ironlot/ironlot/internal/lab/talosnode"
)

func TestWorkerWaitsForTrustd(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	trustd := talosnode.NewTrustd()
	events := make(chan string, 100)
	n := start(t, talosnode.Options{Trustd: trustd, Log: func(msg string) { events <- msg }})
	applyConfig(t, insecure(t, n), c.Worker)
	waitReset(t, n.Addr())

	// A control plane of another cluster does not help.
	other, err := talosnode.NewCluster("other", "https://192.0.2.20:6443")
	require.NoError(t, err)
	require.NoError(t, trustd.Serve(other.ControlPlane))
	waitReset(t, n.Addr())

	require.NoError(t, trustd.Serve(c.ControlPlane))
	reached(t, mTLS(t, n, c.Talosconfig), runtime.MachineStageRunning)
	require.Error(t, trustd.Serve(c.Worker), "a worker's config has no CA key")
}

// waitReset waits until a handshake is reset.
func waitReset(t *testing.T, addr string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE)
	}, 10*time.Second, 5*time.Millisecond)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	vlans := func() []uint32 { return []uint32{100} }
	unmetNode := `nodeReady: node "talos-000-000" status is not available yet`

	t.Run("worker with the wrong VLAN never opens", func(t *testing.T) {
		t.Parallel()
		n := start(t, talosnode.Options{Trustd: up(t, c), VLANs: vlans})
		applyConfig(t, insecure(t, n), c.Worker)
		waitReset(t, n.Addr())
	})
	t.Run("control plane with the wrong VLAN never joins", func(t *testing.T) {
		t.Parallel()
		n := start(t, talosnode.Options{Trustd: up(t, c), VLANs: vlans})
		applyConfig(t, insecure(t, n), c.ControlPlane)
		reached(t, mTLS(t, n, c.Talosconfig), runtime.MachineStageBooting, "services: etcd not running", unmetNode)
	})
	t.Run("the right VLAN joins", func(t *testing.T) {
		t.Parallel()
		n := start(t, talosnode.Options{Trustd: up(t, c), VLANs: vlans})
		cfg := append(bytes.Clone(c.Worker), "---\napiVersion: v1alpha1\nkind: VLANConfig\nname: eno1.100\nvlanID: 100\nparent: eno1\n"...)
		applyConfig(t, insecure(t, n), cfg)
		reached(t, mTLS(t, n, c.Talosconfig), runtime.MachineStageRunning)
	})
	t.Run("kubelet crash", func(t *testing.T) {
		t.Parallel()
		n := start(t, talosnode.Options{Trustd: up(t, c), Faults: talosnode.Faults{KubeletCrash: true}})
		applyConfig(t, insecure(t, n), c.Worker)
		reached(t, mTLS(t, n, c.Talosconfig), runtime.MachineStageBooting, "services: kubelet not running", unmetNode)
	})
	t.Run("answer lost", func(t *testing.T) {
		t.Parallel()
		n := start(t, talosnode.Options{Trustd: up(t, c), Faults: talosnode.Faults{AnswerLost: true}})
		_, err := insecure(t, n).ApplyConfiguration(within(t), &machine.ApplyConfigurationRequest{Data: c.Worker})
		require.Equal(t, codes.Unavailable, client.StatusCode(err))
		reached(t, mTLS(t, n, c.Talosconfig), runtime.MachineStageRunning)
	})
	t.Run("STATE cannot be formatted", func(t *testing.T) {
		t.Parallel()
		store := &talosnode.MemoryStore{}
		n := start(t, talosnode.Options{Store: store, Trustd: up(t, c), Faults: talosnode.Faults{StateReadOnly: true}})
		applyConfig(t, insecure(t, n), c.Worker)
		waitReset(t, n.Addr())
		n.Stop()
		saved, err := store.Load()
		require.NoError(t, err)
		require.Nil(t, saved)
	})
	t.Run("injected config wins", func(t *testing.T) {
		t.Parallel()
		other, err := talosnode.NewCluster("other", "https://192.0.2.20:6443")
		require.NoError(t, err)
		n := start(t, talosnode.Options{Trustd: up(t, other), Faults: talosnode.Faults{Inject: other.Worker}})
		reached(t, mTLS(t, n, other.Talosconfig), runtime.MachineStageRunning)
	})
}

func TestRefusingPort(t *testing.T) {
	t.Parallel()
	n := start(t, talosnode.Options{Refuse: true, Delays: talosnode.Delays{Boot: time.Hour}})
	_, err := net.Dial("tcp", n.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestStopFreesThePort(t *testing.T) {
	t.Parallel()
	n := start(t, talosnode.Options{Delays: talosnode.Delays{Boot: time.Hour}})
	waitReset(t, n.Addr())
	n.Stop()
	n.Stop() // again is harmless
	l, err := net.Listen("tcp", n.Addr())
	require.NoError(t, err)
	require.NoError(t, l.Close())

	taken := start(t, talosnode.Options{})
	_, err = talosnode.Start(t.Context(), talosnode.Options{Addr: taken.Addr()})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}

// Thousands of nodes in one process: none costs more than a few goroutines.
func TestManyNodes(t *testing.T) {
	const count = 300
	before := goruntime.NumGoroutine()
	var nodes []*talosnode.Node
	for range count {
		nodes = append(nodes, start(t, talosnode.Options{}))
	}
	for _, n := range nodes {
		conn, err := tls.Dial("tcp", n.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err == nil {
			_ = conn.Close()
		}
	}
	require.Less(t, goruntime.NumGoroutine()-before, 12*count)
	for _, n := range nodes {
		n.Stop()
	}
}
