package talos_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	stdx509 "crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/talos"
)

// unbootstrapped is a control plane of a cluster that is not there yet, and
// the count of the bootstraps that it was asked for.
func unbootstrapped(t *testing.T, c *talosnode.Cluster, opts talosnode.Options) (*talosnode.Node, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	opts.Trustd, opts.Faults.Inject = talosnode.NewTrustd(), c.ControlPlane
	opts.Log = func(msg string) {
		if msg == "bootstrap request received" {
			asked.Add(1)
		}
	}
	return start(t, opts), &asked
}

func TestBootstrapStartsEtcdOnce(t *testing.T) {
	t.Parallel()
	cfg := talosconfig(t, cluster(t))
	node, asked := unbootstrapped(t, cluster(t), talosnode.Options{})
	var committed []time.Time
	opts := talos.BootstrapOptions{Commit: func(at time.Time) error {
		committed = append(committed, at)
		return nil
	}}
	did, err := talos.Bootstrap(within(t, time.Minute), node.Addr(), cfg, opts)
	require.NoError(t, err)
	require.NotEmpty(t, did.MemberID)
	require.False(t, did.Already)
	require.False(t, committed[len(committed)-1].IsZero(), "the request is on record")

	// The node is the first of a cluster that works, and workers can join.
	_, err = talos.WaitReady(within(t, time.Minute), node.Addr(), cfg, talos.ReadyOptions{Hold: time.Millisecond})
	require.NoError(t, err)

	before := asked.Load()
	again, err := talos.Bootstrap(within(t, time.Minute), node.Addr(), cfg, opts)
	require.NoError(t, err)
	require.True(t, again.Already)
	require.Equal(t, did.MemberID, again.MemberID)
	require.Equal(t, before, asked.Load(), "a cluster that is there is not asked for")

	c, err := talos.Dial(t.Context(), node.Addr(), cfg)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	outcome, err := c.Bootstrap(t.Context())
	require.NoError(t, err, "AlreadyExists is no failure")
	require.Equal(t, talos.Refused, outcome)
}

func TestBootstrapWithALostAnswerIsNotRepeated(t *testing.T) {
	t.Parallel()
	node, asked := unbootstrapped(t, cluster(t), talosnode.Options{Faults: talosnode.Faults{BootstrapLost: true}})
	sees(t, node.Addr(), talos.Configured)
	waitsForEtcd(t, node)
	did, err := talos.Bootstrap(within(t, time.Minute), node.Addr(), talosconfig(t, cluster(t)), talos.BootstrapOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, did.MemberID)
	require.False(t, did.Already)
	require.EqualValues(t, 1, asked.Load())
}

// TestBootstrapThatWasForgotten: machined keeps an accepted request in memory
// alone. It is asked for again when it has shown nothing for a while.
func TestBootstrapThatWasForgotten(t *testing.T) {
	t.Parallel()
	node, asked := unbootstrapped(t, cluster(t), talosnode.Options{Faults: talosnode.Faults{BootstrapForgotten: true}})
	sees(t, node.Addr(), talos.Configured)
	waitsForEtcd(t, node)
	_, err := talos.Bootstrap(within(t, time.Minute), node.Addr(), talosconfig(t, cluster(t)), talos.BootstrapOptions{Settle: time.Millisecond})
	require.NoError(t, err)
	require.EqualValues(t, 2, asked.Load())
}

// TestBootstrapOfAnEarlierAttemptIsWaitedFor: it may have been heard.
func TestBootstrapOfAnEarlierAttemptIsWaitedFor(t *testing.T) {
	t.Parallel()
	node, asked := unbootstrapped(t, cluster(t), talosnode.Options{})
	waitsForEtcd(t, node)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	var steps []string
	_, err := talos.Bootstrap(ctx, node.Addr(), talosconfig(t, cluster(t)), talos.BootstrapOptions{
		Asked: time.Now(), Settle: time.Hour,
		Report: func(step string) {
			steps = append(steps, step)
			if strings.Contains(step, "asked for, etcd has not started yet") {
				cancel()
			}
		},
	})
	require.ErrorIs(t, err, context.Canceled, "%v", steps)
	require.ErrorContains(t, err, "is not bootstrapped yet (bootstrap: asked for")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
	require.Zero(t, asked.Load())
}

// TestBootstrapRefusesASecondCluster: the Kubernetes API of the cluster
// answers at its endpoint, so etcd runs on another machine.
func TestBootstrapRefusesASecondCluster(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c, err := talosnode.NewCluster("prod", "https://"+listener.Addr().String())
	require.NoError(t, err)
	api := httptest.NewUnstartedServer(http.NotFoundHandler())
	require.NoError(t, api.Listener.Close())
	api.Listener, api.TLS = listener, &tls.Config{Certificates: []tls.Certificate{kubernetesCert(t, c)}}
	api.StartTLS()
	t.Cleanup(api.Close)

	config, err := talos.Inspect(talos.Named{Name: "controlplane.yaml", Data: c.ControlPlane})
	require.NoError(t, err)
	node, asked := unbootstrapped(t, c, talosnode.Options{})
	_, err = talos.Bootstrap(within(t, time.Minute), node.Addr(), talosconfig(t, c), talos.BootstrapOptions{Config: config})
	require.ErrorContains(t, err, "the Kubernetes API of cluster prod answers at https://"+listener.Addr().String()+" already, and a bootstrap would start a second etcd")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.Zero(t, asked.Load())

	// Another cluster's API at the same address is none of it.
	other, err := talosnode.NewCluster("other", "https://"+listener.Addr().String())
	require.NoError(t, err)
	config, err = talos.Inspect(talos.Named{Name: "controlplane.yaml", Data: other.ControlPlane})
	require.NoError(t, err)
	node, _ = unbootstrapped(t, other, talosnode.Options{})
	_, err = talos.Bootstrap(within(t, time.Minute), node.Addr(), talosconfig(t, other), talos.BootstrapOptions{Config: config})
	require.NoError(t, err)
}

func TestBootstrapNeedsAdmin(t *testing.T) {
	t.Parallel()
	data, err := cluster(t).TalosconfigFor(role.Reader)
	require.NoError(t, err)
	reader, err := talos.ParseTalosconfig(data, "")
	require.NoError(t, err)
	node, asked := unbootstrapped(t, cluster(t), talosnode.Options{})
	_, err = talos.Bootstrap(within(t, time.Minute), node.Addr(), reader, talos.BootstrapOptions{})
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.ErrorContains(t, err, "os:admin")
	require.Zero(t, asked.Load())
}

// waitsForEtcd waits until the node's time is synced and etcd waits for a
// bootstrap: from then on it takes one.
func waitsForEtcd(t *testing.T, node *talosnode.Node) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	_, err := talos.WaitReady(ctx, node.Addr(), talosconfig(t, cluster(t)), talos.ReadyOptions{Report: func(unmet []string) {
		if strings.Contains(strings.Join(unmet, "\n"), "services: etcd not running") {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
}

// kubernetesCert is a server certificate of the cluster's Kubernetes CA.
func kubernetesCert(t *testing.T, c *talosnode.Cluster) tls.Certificate {
	t.Helper()
	cfg, err := configloader.NewFromBytes(c.ControlPlane)
	require.NoError(t, err)
	ca, err := tls.X509KeyPair(cfg.Cluster().IssuingCA().Crt, cfg.Cluster().IssuingCA().Key)
	require.NoError(t, err)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := stdx509.CreateCertificate(rand.Reader, &stdx509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, ca.Leaf, public, ca.PrivateKey)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}
