package talosnode

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	cosi "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

var errNotAuthorized = status.Error(codes.PermissionDenied, "not authorized")

// drain is how long answers that are under way may take when the API closes.
const drain = 200 * time.Millisecond

// api is one time of serving: in maintenance, or configured.
type api struct {
	server *grpc.Server
	served sync.WaitGroup
}

// serve opens the API. In maintenance every caller is a reader; afterwards
// the client certificate's organisation says what a caller is.
func (n *Node) serve(tlsConfig *tls.Config) error {
	maintenance := tlsConfig.ClientAuth == tls.NoClientCert
	listener, err := n.gate.serve()
	if err != nil {
		return err
	}
	a := &api{server: grpc.NewServer(
		grpc.Creds(credentials.NewTLS(tlsConfig)),
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			ctx, err := authorize(ctx, info.FullMethod, maintenance)
			if err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			ctx, err := authorize(stream.Context(), info.FullMethod, maintenance)
			if err != nil {
				return err
			}
			return handler(srv, &roleStream{ServerStream: stream, ctx: ctx})
		}),
	)}
	machine.RegisterMachineServiceServer(a.server, &machineService{node: n, maintenance: maintenance})
	cosiv1alpha1.RegisterStateServer(a.server, cosi.NewState(state.Filter(n.resources.st, policy())))
	a.served.Go(func() { _ = a.server.Serve(listener) })
	n.api = a
	return nil
}

// dark closes the API: connections are cut and new ones reset. Answers that
// are under way are still sent, unless they are to be lost.
func (n *Node) dark(abrupt bool) {
	n.gate.shut()
	if n.api == nil {
		return
	}
	if !abrupt {
		drained := make(chan struct{})
		go func() {
			n.api.server.GracefulStop()
			close(drained)
		}()
		select {
		case <-drained:
		case <-time.After(drain):
		}
	}
	n.api.server.Stop()
	n.api.served.Wait()
	n.api = nil
}

// roleKey is the key of the caller's roles in a context.
type roleKey struct{}

func rolesOf(ctx context.Context) role.Set {
	roles, _ := ctx.Value(roleKey{}).(role.Set)
	return roles
}

// authorize finds out who calls and whether that one may. Methods that are
// not listed are for admins.
func authorize(ctx context.Context, method string, maintenance bool) (context.Context, error) {
	roles := role.MakeSet(role.Reader)
	if md, _ := metadata.FromIncomingContext(ctx); maintenance && len(md.Get("nodes"))+len(md.Get("node")) > 0 {
		return nil, status.Error(codes.PermissionDenied, "requests cannot be forwarded in maintenance")
	}
	if !maintenance {
		p, ok := peer.FromContext(ctx)
		if !ok {
			return nil, errNotAuthorized
		}
		info, ok := p.AuthInfo.(credentials.TLSInfo)
		if !ok || len(info.State.PeerCertificates) == 0 {
			return nil, errNotAuthorized
		}
		roles, _ = role.Parse(info.State.PeerCertificates[0].Subject.Organization)
	}
	allowed := role.MakeSet(role.Admin)
	switch method {
	case machine.MachineService_Version_FullMethodName, machine.MachineService_List_FullMethodName,
		cosiv1alpha1.State_Get_FullMethodName, cosiv1alpha1.State_List_FullMethodName, cosiv1alpha1.State_Watch_FullMethodName:
		allowed = role.MakeSet(role.Admin, role.Operator, role.Reader)
	case machine.MachineService_ApplyConfiguration_FullMethodName:
		if maintenance {
			allowed = role.MakeSet(role.Admin, role.Reader)
		}
	}
	if !roles.IncludesAny(allowed) {
		return nil, errNotAuthorized
	}
	return context.WithValue(ctx, roleKey{}, roles), nil
}

// roleStream is a stream whose context knows the caller's roles.
type roleStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context knows the caller's roles.
func (s *roleStream) Context() context.Context { return s.ctx }
