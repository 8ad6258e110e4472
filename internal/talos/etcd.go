package talos

import (
	"context"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ironlot/ironlot/internal/fault"
)

// Etcd is what a control plane shows of its etcd. Until it is bootstrapped or
// has joined other members, etcd waits and has no member ID.
type Etcd struct {
	Running  bool   // the service runs
	Healthy  bool   // and answers
	MemberID string // hex, once the node is a member of a cluster
}

// Member reports whether the node is a working member of an etcd cluster.
func (e Etcd) Member() bool { return e.Running && e.Healthy && e.MemberID != "" }

// Started reports whether etcd has begun, so that there is nothing to
// bootstrap any more.
func (e Etcd) Started() bool { return e.Running || e.MemberID != "" }

// Etcd looks at the node's etcd, by Talos's resources Service and EtcdMember.
func (c *Client) Etcd(ctx context.Context) (Etcd, error) {
	var seen Etcd
	service, err := safe.StateGetByID[*v1alpha1.Service](ctx, c.state, "etcd")
	switch {
	case err == nil:
		seen.Running, seen.Healthy = service.TypedSpec().Running, service.TypedSpec().Healthy
	case !state.IsNotFoundError(err):
		return Etcd{}, c.explain(err)
	}
	member, err := safe.StateGet[*etcd.Member](ctx, c.state, etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID).Metadata())
	switch {
	case err == nil:
		seen.MemberID = member.TypedSpec().MemberID
	case !state.IsNotFoundError(err):
		return Etcd{}, c.explain(err)
	}
	return seen, nil
}

// Bootstrap asks the node to start the cluster's etcd, once. Like Apply it
// tells what is known afterwards: with Unknown the answer was lost, and the
// node is looked at before anybody asks again. An accepted request is kept in
// the memory of the node alone, so that Accepted is no proof either; Etcd is.
// Refused without an error says that the node has data of etcd already.
func (c *Client) Bootstrap(ctx context.Context) (Outcome, error) {
	_, err := c.machine.Bootstrap(ctx, &machine.BootstrapRequest{})
	return bootstrapVerdict(c.addr, err)
}

// bootstrapVerdict says what an answer to bootstrap means.
func bootstrapVerdict(addr string, err error) (Outcome, error) {
	switch code := status.Code(err); code {
	case codes.OK:
		return Accepted, nil
	case codes.AlreadyExists:
		return Refused, nil
	case codes.FailedPrecondition:
		return Refused, fault.Retry("the node at %s cannot bootstrap etcd yet: %s", addr, redact(status.Convert(err).Message(), nil))
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return Refused, fault.Operator("use a talosconfig with the role os:admin", "the node at %s does not let its etcd be bootstrapped: %s", addr, code)
	default:
		return Unknown, fault.Retry("the answer to bootstrap from %s was lost: %s", addr, code)
	}
}
