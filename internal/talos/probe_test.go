package talos_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/talos"
)

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
