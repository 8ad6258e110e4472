package talos_test

import (
	"bytes"
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/run"
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

func TestProbeTalos(t *testing.T) {
	t.Parallel()
	got := sees(t, start(t, talosnode.Options{}).Addr(), talos.Maintenance)
	require.Equal(t, talos.Observation{State: talos.Maintenance, Version: "v1.13.8", Build: "lab-simulated", Stage: "maintenance"}, got)

	require.Equal(t, talos.Observation{State: talos.Configured}, sees(t, configured(t, talosnode.Options{}).Addr(), talos.Configured))
	sees(t, start(t, talosnode.Options{Delays: talosnode.Delays{Boot: time.Hour}}).Addr(), talos.Resetting)
	sees(t, start(t, talosnode.Options{Refuse: true, Delays: talosnode.Delays{Boot: time.Hour}}).Addr(), talos.Closed)
}

func TestProbeOthers(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	secureWeb := httptest.NewUnstartedServer(http.NotFoundHandler())
	secureWeb.EnableHTTP2 = true
	secureWeb.StartTLS()
	t.Cleanup(secureWeb.Close)
	oldWeb := httptest.NewTLSServer(http.NotFoundHandler()) // HTTP/1.1
	t.Cleanup(oldWeb.Close)

	for name, tc := range map[string]struct {
		addr string
		want talos.APIState
	}{
		"HTTP":    {web.Listener.Addr().String(), talos.NotTalos},
		"HTTPS":   {oldWeb.Listener.Addr().String(), talos.NotTalos},
		"HTTP/2":  {secureWeb.Listener.Addr().String(), talos.NotTalos},
		"SSH":     {server(t, func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")); hold(c) }), talos.NotTalos},
		"closing": {server(t, func(c net.Conn) { _ = c.Close() }), talos.Resetting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := talos.Probe(t.Context(), tc.addr)
			require.NoError(t, err)
			require.Equal(t, talos.Observation{State: tc.want}, got)
		})
	}
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		got, err := talos.Probe(t.Context(), server(t, hold))
		require.NoError(t, err)
		require.Equal(t, talos.Observation{State: talos.Silent}, got)
	})
	t.Run("the caller gives up", func(t *testing.T) {
		t.Parallel()
		_, err := talos.Probe(within(t, 50*time.Millisecond), server(t, hold))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("no address", func(t *testing.T) {
		t.Parallel()
		for _, addr := range []string{"", "host", "127.0.0.1:99999999", "127.0.0.1:no-such-port"} {
			_, err := talos.Probe(t.Context(), addr)
			require.Error(t, err, addr)
		}
	})
}

// server does the same with every connection.
func server(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	return l.Addr().String()
}

// hold reads until the other side goes.
func hold(c net.Conn) {
	buf := make([]byte, 1024)
	for {
		if _, err := c.Read(buf); err != nil {
			_ = c.Close()
			return
		}
	}
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
	node := start(t, talosnode.Options{Delays: talosnode.Delays{Answer: time.Hour}})
	sees(t, node.Addr(), talos.Maintenance)
	outcome, err := talos.Apply(within(t, 300*time.Millisecond), node.Addr(), rendered(t).Bytes)
	require.Equal(t, talos.Unknown, outcome, "a node that hangs may have taken the config")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
}

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
