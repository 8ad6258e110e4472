package temporal_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/internal/testenv"
)

// TestWhyNobodyAnswers: one sentence with the address, what was found there and
// what to do, in words for people.
func TestWhyNobodyAnswers(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.EnableHTTP2 = true
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	for name, c := range map[string]struct {
		address string
		vars    variables
		want    []string
	}{
		"nobody listens": {address: testenv.Nobody(), want: []string{": nothing listens there; start one with `starter up`, or name the right one with --address or TEMPORAL_ADDRESS"}},
		"no such name":   {address: "temporal.invalid:7233", want: []string{"the name", "temporal.invalid", "check the host in --address"}},
		"a web page":     {address: page.Listener.Addr().String(), want: []string{": what listens there is no Temporal; check the port"}},
		"it wants TLS":   {address: secure.Listener.Addr().String(), want: []string{"speaks TLS, and the settings ask for none; set TEMPORAL_TLS=true"}},
		"it has no TLS": {address: page.Listener.Addr().String(), vars: variables{"TEMPORAL_TLS": "true"},
			want: []string{"speaks no TLS, and the settings ask for it; leave out TEMPORAL_TLS"}},
		"its certificate is unknown": {address: secure.Listener.Addr().String(), vars: variables{"TEMPORAL_TLS": "true"},
			want: []string{"its TLS fails: ", "unknown authority; check TEMPORAL_TLS_SERVER_CA_CERT_PATH"}},
		"a resolver of gRPC's own": {address: "unix:///nowhere", want: []string{"Temporal does not answer at unix:///nowhere: ", "; start one with `starter up`"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := temporal.Dial(t.Context(), temporal.Options{Address: c.address, Lookup: c.vars})
			require.ErrorContains(t, err, "Temporal does not answer at "+c.address)
			require.Equal(t, fault.Transient, fault.ClassOf(err))
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			for _, raw := range []string{"desc =", "transport", "failed reaching", "\n"} {
				require.NotContains(t, err.Error(), raw)
			}
		})
	}
}

// TestAMutePort takes connections and never speaks.
func TestAMutePort(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	mute, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	_, err = temporal.Dial(t.Context(), temporal.Options{Address: mute.Addr().String(), Lookup: variables{}})
	require.ErrorContains(t, err, ": it takes connections and says nothing; check the port")
}

// TestExplain: what comes over a connection is told with whose it is, and
// stays what it was.
func TestExplain(t *testing.T) {
	t.Parallel()
	c := &temporal.Connection{Address: "here:7233", Namespace: "nope"}
	err := c.Explain(serviceerror.NewNamespaceNotFound("nope"))
	require.EqualError(t, err, `Temporal at here:7233 has no namespace "nope"; name one that is there with --namespace, TEMPORAL_NAMESPACE or the profile`)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))

	err = c.Explain(serviceerror.NewUnavailable(`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:9: connect: connection refused"`))
	require.ErrorContains(t, err, "Temporal at here:7233 has ceased to answer (dial tcp 127.0.0.1:9: connect: connection refused); ")
	require.True(t, temporal.Unanswered(err))

	for _, err := range []error{nil, context.Canceled, fault.Operator("mend it", "wrong: %w", serviceerror.NewUnavailable("away"))} {
		require.Equal(t, err, c.Explain(err))
		require.Equal(t, err, (*temporal.Connection)(nil).Explain(err))
	}
}

// variables are a test's whole environment.
type variables map[string]string

func (v variables) Environ() []string { return nil }

func (v variables) LookupEnv(key string) (string, bool) {
	value, ok := v[key]
	return value, ok
}
