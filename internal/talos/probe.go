package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	cosi "github.com/cosi-project/runtime/pkg/state/protobuf/client"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ironlot/ironlot/internal/fault"
)

// probeTimeout bounds one look at a node.
const probeTimeout = 5 * time.Second

// APIState is what a look at the Talos API port shows.
type APIState string

// What the port shows.
const (
	Closed      APIState = "closed"      // the connection is refused: nothing listens
	Silent      APIState = "silent"      // no answer in time, or no way to the host
	Resetting   APIState = "resetting"   // accepted, then cut: apid is not up yet, or never will be
	Maintenance APIState = "maintenance" // answers without a certificate: waits for a config
	Configured  APIState = "configured"  // wants a client certificate: has a config
	NotTalos    APIState = "not-talos"   // something else answers
)

// Observation is one look at a node without credentials.
type Observation struct {
	State   APIState
	Version string // Talos version, in maintenance
	Build   string // commit of the Talos build, in maintenance
	Stage   string // MachineStatus stage, in maintenance, when it tells
}

// Probe looks once at the Talos API of addr (host:port) without credentials
// and changes nothing. What it sees is never an error; the error is for an
// address that is none and for the caller's context.
func Probe(ctx context.Context, addr string) (Observation, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return Observation{}, fault.Operator("give it as host:port", "%q is not an address: %w", addr, err)
	}
	look, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	seen, err := probe(look, addr)
	if ctx.Err() != nil {
		return Observation{}, context.Cause(ctx)
	}
	// The connection's own deadline may strike a moment before the context's.
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return Observation{}, context.DeadlineExceeded
	}
	return seen, err
}

func probe(ctx context.Context, addr string) (Observation, error) {
	c, err := dialTLS(ctx, addr, anonymous())
	if err != nil {
		return refusal(addr, err)
	}
	defer func() { _ = c.Close() }()
	if c.ConnectionState().NegotiatedProtocol != "h2" {
		return Observation{State: NotTalos}, nil
	}
	rpc, err := grpcOver(addr, once(c))
	if err != nil {
		return Observation{}, err
	}
	defer func() { _ = rpc.Close() }()

	version, err := machine.NewMachineServiceClient(rpc).Version(ctx, &emptypb.Empty{})
	if err != nil {
		return Observation{State: silenceOf(c.ended(), err)}, nil
	}
	if len(version.GetMessages()) == 0 || version.GetMessages()[0].GetVersion() == nil {
		return Observation{State: NotTalos}, nil
	}
	info := version.GetMessages()[0].GetVersion()
	return Observation{State: Maintenance, Version: info.GetTag(), Build: info.GetSha(), Stage: stage(ctx, rpc)}, nil
}

// anonymous is TLS without credentials. The certificate in maintenance is
// made on the node and cannot be known. TLS 1.3 makes the alert for a missing
// client certificate unambiguous.
func anonymous() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{"h2"}}
}

// refusal tells what a failed connection or handshake shows.
func refusal(addr string, err error) (Observation, error) {
	var notTLS tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return Observation{}, fault.Retry("the address %s cannot be looked up: %w", addr, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return Observation{State: Closed}, nil
	case alertOf(err) == alertCertificateRequired:
		return Observation{State: Configured}, nil
	case timedOut(err), unroutable(err):
		return Observation{State: Silent}, nil
	case cut(err):
		return Observation{State: Resetting}, nil
	case errors.As(err, &notTLS), alertOf(err) != 0:
		return Observation{State: NotTalos}, nil
	case errors.As(err, new(*net.AddrError)):
		return Observation{}, fault.Operator("correct the address", "the address %s cannot be used: %w", addr, err)
	default: // TLS that Go does not understand
		return Observation{State: NotTalos}, nil
	}
}

// silenceOf tells what a failed first call shows: how the connection ended
// comes first, then what the other side answered.
func silenceOf(end, err error) APIState {
	code := status.Code(err)
	switch {
	case alertOf(end) == alertCertificateRequired:
		return Configured
	case alertOf(end) != 0:
		return NotTalos
	case cut(end):
		return Resetting
	case code == codes.DeadlineExceeded || code == codes.Canceled:
		return Silent
	case code == codes.Unavailable:
		return Resetting
	default:
		return NotTalos
	}
}

// stage reads the machine's stage; a node that does not tell is no failure.
func stage(ctx context.Context, rpc *grpc.ClientConn) string {
	st := state.WrapCore(cosi.NewAdapter(cosiv1alpha1.NewStateClient(rpc)))
	machine, err := safe.StateGetByID[*runtime.MachineStatus](ctx, st, runtime.MachineStatusID)
	if err != nil {
		return ""
	}
	return machine.TypedSpec().Stage.String()
}
