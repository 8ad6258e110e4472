package talos

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ironlot/ironlot/internal/fault"
)

// alert is how crypto/tls tells of an alert that the other side has sent.
func alert(code uint8) error { return &net.OpError{Op: "remote error", Err: tls.AlertError(code)} }

// TestVerdictsOfAnApplyThatFailed: what may have been taken is not sent again.
func TestVerdictsOfAnApplyThatFailed(t *testing.T) {
	t.Parallel()
	const canary = "canary-5f21c9"
	config := []byte("machine:\n  token: " + canary + "\n")
	broken := errors.New("connection reset")
	for name, c := range map[string]struct {
		end, err error
		outcome  Outcome
		class    fault.Class
		want     string
	}{
		"refused": {nil, status.Error(codes.InvalidArgument, "unknown keys in "+canary), Refused, fault.NeedsOperator,
			"Talos at n1 refuses the machine config: unknown keys in "},
		"busy": {nil, status.Error(codes.FailedPrecondition, "a reboot is at work with "+canary), Refused, fault.Transient,
			"Talos at n1 is busy with another config or a reboot: a reboot is at work with "},
		"denied": {nil, status.Error(codes.PermissionDenied, canary), Refused, fault.NeedsOperator,
			"n1 does not take a config without credentials: PermissionDenied; check that the address is the server's and that it runs Talos 1.13"},
		"no Talos": {nil, status.Error(codes.Unimplemented, canary), Refused, fault.NeedsOperator,
			"n1 does not take a config without credentials: Unimplemented; check that the address is the server's and that it runs Talos 1.13"},
		"configured": {alert(alertCertificateRequired), status.Error(codes.Unavailable, canary), Refused, fault.Transient,
			"the node at n1 has a config already, this one was not taken: it wants a client certificate"},
		"lost": {broken, status.Error(codes.Unavailable, canary), Unknown, fault.Transient,
			"the answer to apply-config from n1 was lost: Unavailable"},
		"too late": {nil, status.Error(codes.DeadlineExceeded, canary), Unknown, fault.Transient,
			"the answer to apply-config from n1 was lost: DeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome, err := verdict("n1", config, c.end, c.err)
			require.Equal(t, c.outcome, outcome)
			require.Equal(t, c.class, fault.ClassOf(err))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), canary)
			require.Equal(t, name == "configured", AlreadyConfigured(err))
		})
	}
}

// TestFailedCalls: how the connection failed comes before what was answered.
func TestFailedCalls(t *testing.T) {
	t.Parallel()
	verification := func(err error) error { return &tls.CertificateVerificationError{Err: err} }
	answered := status.Error(codes.Unavailable, "canary")
	for name, c := range map[string]struct {
		fail, err error
		class     fault.Class
		want      string
	}{
		"another cluster's node": {verification(x509.UnknownAuthorityError{}), answered, fault.Transient, "n1: " + ErrForeignIdentity.Error()},
		"other names": {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "n1"}, answered, fault.NeedsOperator,
			"the certificate of the node at n1 is for other names; add the address to machine.certSANs"},
		"wrong clock": {x509.CertificateInvalidError{Reason: x509.Expired, Detail: "late"}, answered, fault.Transient,
			"the certificate of the node at n1 is not valid now, its clock or this one may be wrong: x509: certificate has expired or is not yet valid: late"},
		"client refused": {alert(42), answered, fault.NeedsOperator,
			"the node at n1 refuses the client certificate: remote error: tls: bad certificate; use the talosconfig of the cluster that the node belongs to"},
		"out of reach": {errors.New("connection refused"), answered, fault.Transient, "the Talos API on n1 cannot be reached: connection refused"},
		"denied": {nil, status.Error(codes.PermissionDenied, "canary"), fault.NeedsOperator,
			"the node at n1 does not allow it: PermissionDenied; use a talosconfig with the role os:admin"},
		"no answer of the node": {nil, errors.New("context deadline exceeded"), fault.Transient, "asking the Talos API on n1 failed: context deadline exceeded"},
		"its own trouble":       {nil, status.Error(codes.Internal, "canary"), fault.Transient, "asking the Talos API on n1 failed: Internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&Client{addr: "n1", fail: c.fail}).explain(c.err)
			require.EqualError(t, err, c.want)
			require.Equal(t, c.class, fault.ClassOf(err))
		})
	}
}

// TestVerdictsOfABootstrap: only an answer that was lost may have done it.
func TestVerdictsOfABootstrap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		outcome Outcome
		want    string // empty: no error
	}{
		"accepted":  {nil, Accepted, ""},
		"has etcd":  {status.Error(codes.AlreadyExists, "etcd data directory is not empty"), Refused, ""},
		"too early": {status.Error(codes.FailedPrecondition, "bootstrap is not available yet"), Refused, "the node at n1 cannot bootstrap etcd yet: bootstrap is not available yet"},
		"denied":    {status.Error(codes.PermissionDenied, "canary"), Refused, "the node at n1 does not let its etcd be bootstrapped: PermissionDenied; use a talosconfig with the role os:admin"},
		"worker":    {status.Error(codes.Unimplemented, "canary"), Refused, "the node at n1 does not let its etcd be bootstrapped: Unimplemented; use a talosconfig with the role os:admin"},
		"lost":      {status.Error(codes.Unavailable, "canary"), Unknown, "the answer to bootstrap from n1 was lost: Unavailable"},
		"too late":  {status.Error(codes.DeadlineExceeded, "canary"), Unknown, "the answer to bootstrap from n1 was lost: DeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome, err := bootstrapVerdict("n1", c.err)
			require.Equal(t, c.outcome, outcome)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
		})
	}
}
