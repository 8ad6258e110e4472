package talos_test

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/talos"
)

func TestDialErrors(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	cfg := talosconfig(t, c)
	other, err := talosnode.NewCluster("other", "https://192.0.2.20:6443")
	require.NoError(t, err)

	maintenance := start(t, talosnode.Options{})
	sees(t, maintenance.Addr(), talos.Maintenance)
	_, err = talos.Dial(t.Context(), maintenance.Addr(), cfg)
	require.ErrorIs(t, err, talos.ErrForeignIdentity, "the certificate of maintenance")
	require.Equal(t, fault.Transient, fault.ClassOf(err))

	node := configured(t, talosnode.Options{})
	sees(t, node.Addr(), talos.Configured)
	_, err = talos.Dial(t.Context(), node.Addr(), talosconfig(t, other))
	require.ErrorIs(t, err, talos.ErrForeignIdentity, "a node of another cluster")

	// The same node under a name that its certificate does not have.
	_, port, err := net.SplitHostPort(node.Addr())
	require.NoError(t, err)
	_, err = talos.Dial(t.Context(), net.JoinHostPort("localhost", port), cfg)
	require.ErrorContains(t, err, "machine.certSANs")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))

	_, err = talos.Dial(t.Context(), "nonsense", cfg)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))

	resetting := start(t, talosnode.Options{Delays: talosnode.Delays{Boot: time.Hour}})
	_, err = talos.Dial(t.Context(), resetting.Addr(), cfg)
	require.ErrorContains(t, err, "cannot be reached")
	require.NotErrorIs(t, err, talos.ErrForeignIdentity)
	require.Equal(t, fault.Transient, fault.ClassOf(err))
}

func TestReaderCannotProveTheConfig(t *testing.T) {
	t.Parallel()
	data, err := cluster(t).TalosconfigFor(role.Reader)
	require.NoError(t, err)
	cfg, err := talos.ParseTalosconfig(data, "")
	require.NoError(t, err)
	node := configured(t, talosnode.Options{})
	sees(t, node.Addr(), talos.Configured)
	c, err := talos.Dial(t.Context(), node.Addr(), cfg)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.ConfigSHA256(t.Context())
	require.ErrorContains(t, err, "os:admin")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}

func TestNodeRefusesClient(t *testing.T) {
	t.Parallel()
	// The node's config accepts another CA's clients only, though its own
	// certificate is the cluster's: a rotated client CA.
	other, err := talosnode.NewCluster("lab", "https://192.0.2.10:6443")
	require.NoError(t, err)
	addr := mixedServer(t, cluster(t), other)
	_, err = talos.Dial(t.Context(), addr, talosconfig(t, cluster(t)))
	require.ErrorContains(t, err, "refuses the client certificate")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	_, err = talos.WaitReady(within(t, 20*time.Second), addr, talosconfig(t, cluster(t)), talos.ReadyOptions{})
	require.False(t, errors.Is(err, context.DeadlineExceeded), "no use in waiting")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}

// mixedServer shows a certificate of one cluster and accepts the clients of
// another.
func mixedServer(t *testing.T, own, clients *talosnode.Cluster) string {
	t.Helper()
	ca := func(c *talosnode.Cluster) *x509.PEMEncodedCertificateAndKey {
		cfg, err := configloader.NewFromBytes(c.ControlPlane)
		require.NoError(t, err)
		return cfg.Machine().Security().IssuingCA()
	}
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(ca(own))
	require.NoError(t, err)
	pair, err := x509.NewKeyPair(authority, x509.IPAddresses([]net.IP{net.IPv4(127, 0, 0, 1)}))
	require.NoError(t, err)
	accepted := stdx509.NewCertPool()
	require.True(t, accepted.AppendCertsFromPEM(ca(clients).Crt))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{*pair.Certificate}, NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: accepted,
	})
	require.NoError(t, err)
	server := grpc.NewServer()
	t.Cleanup(server.Stop)
	go func() { _ = server.Serve(l) }()
	return l.Addr().String()
}
