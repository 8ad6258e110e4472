package talos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	cosi "github.com/cosi-project/runtime/pkg/state/protobuf/client"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ironlot/ironlot/internal/fault"
)

// ErrForeignIdentity means that the node's certificate is not signed by the
// lot's cluster. For some seconds after apply-config that is normal: the node
// still shows its certificate from maintenance. For long, it is another
// cluster's node.
var ErrForeignIdentity = errors.New("the node's certificate is not of this cluster")

// handshakeTimeout bounds one connection attempt of a Client.
const handshakeTimeout = 10 * time.Second

// Client talks mTLS to exactly one node. Its calls connect as needed.
type Client struct {
	addr    string
	rpc     *grpc.ClientConn
	machine machine.MachineServiceClient
	state   state.State

	mu   sync.Mutex
	last *conn // the connection in use
	fail error // why the last attempt to connect failed
}

// Dial connects to the Talos API of addr (host:port) with the client
// certificate of the lot's cluster and checks that the node answers. Errors:
// ErrForeignIdentity, NeedsOperator where the node refuses the certificate or
// shows another name, else Transient.
func Dial(ctx context.Context, addr string, cfg *ClientConfig) (*Client, error) {
	c, err := newClient(addr, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := c.Version(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// newClient makes a client that has not connected yet.
func newClient(addr string, cfg *ClientConfig) (*Client, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fault.Operator("give it as host:port", "%q is not an address: %w", addr, err)
	}
	c := &Client{addr: addr}
	c.rpc, err = grpcOver(addr, func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		conn, err := dialTLS(ctx, addr, cfg.tls(host))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last, c.fail = conn, err
		if err != nil {
			return nil, err
		}
		return conn, nil
	})
	if err != nil {
		return nil, err
	}
	c.machine = machine.NewMachineServiceClient(c.rpc)
	// Watches are reopened by WatchReady, which looks at everything again.
	c.state = state.WrapCore(cosi.NewAdapter(cosiv1alpha1.NewStateClient(c.rpc), cosi.WithDisableWatchRetry()))
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.rpc.Close() }

// Version is what a node runs.
type Version struct {
	Tag      string // such as v1.13.8
	Build    string // commit of the build
	Platform string // metal
}

// Version asks the node what it runs.
func (c *Client) Version(ctx context.Context) (Version, error) {
	answer, err := c.machine.Version(ctx, &emptypb.Empty{})
	if err != nil {
		return Version{}, c.explain(err)
	}
	if len(answer.GetMessages()) == 0 {
		return Version{}, fault.Retry("the Talos API on %s gave an empty answer", c.addr)
	}
	m := answer.GetMessages()[0]
	return Version{Tag: m.GetVersion().GetTag(), Build: m.GetVersion().GetSha(), Platform: m.GetPlatform().GetName()}, nil
}

// MachineStatus reads the machine's stage and whether it is ready.
func (c *Client) MachineStatus(ctx context.Context) (runtime.MachineStatusSpec, error) {
	got, err := safe.StateGetByID[*runtime.MachineStatus](ctx, c.state, runtime.MachineStatusID)
	if err != nil {
		return runtime.MachineStatusSpec{}, c.explain(err)
	}
	return *got.TypedSpec(), nil
}

// SystemUUID is the hardware's UUID as Talos reads it from SMBIOS; empty when
// it does not know it.
func (c *Client) SystemUUID(ctx context.Context) (string, error) {
	got, err := safe.StateGetByID[*hardware.SystemInformation](ctx, c.state, hardware.SystemInformationID)
	switch {
	case state.IsNotFoundError(err):
		return "", nil
	case err != nil:
		return "", c.explain(err)
	}
	return got.TypedSpec().UUID, nil
}

// explain classifies a failed call: how the connection failed or ended comes
// first, then what the node answered. Causes keep their types.
func (c *Client) explain(err error) error {
	c.mu.Lock()
	fail, last := c.fail, c.last
	c.mu.Unlock()
	if fail == nil && last != nil && status.Code(err) == codes.Unavailable {
		fail = last.ended()
	}
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case foreign(fail):
		return fault.Retry("%s: %w", c.addr, ErrForeignIdentity)
	case errors.As(fail, &name):
		return fault.Operator("add the address to machine.certSANs", "the certificate of the node at %s is for other names", c.addr)
	case errors.As(fail, &invalid):
		return fault.Retry("the certificate of the node at %s is not valid now, its clock or this one may be wrong: %w", c.addr, invalid)
	case alertOf(fail) != 0:
		return fault.Operator("use the talosconfig of the cluster that the node belongs to",
			"the node at %s refuses the client certificate: %w", c.addr, fail)
	case fail != nil:
		return fault.Retry("the Talos API on %s cannot be reached: %w", c.addr, fail)
	}
	switch code := status.Code(err); code {
	case codes.PermissionDenied, codes.Unauthenticated:
		return fault.Operator("use a talosconfig with the role os:admin", "the node at %s does not allow it: %s", c.addr, code)
	case codes.Unknown: // not from the node: the context, or COSI's own
		return fault.Retry("asking the Talos API on %s failed: %w", c.addr, err)
	default:
		return fault.Retry("asking the Talos API on %s failed: %s", c.addr, code)
	}
}

// foreign reports whether a handshake failed on a certificate that the
// cluster's CA did not sign.
func foreign(err error) bool {
	var authority x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		err = verification.Err
	}
	return errors.As(err, &authority)
}
