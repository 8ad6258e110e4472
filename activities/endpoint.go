package activities

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// lookup gives the addresses of a host name, as net.Resolver.LookupHost does.
type lookup func(ctx context.Context, host string) ([]string, error)

// lookupTimeout bounds the look at the endpoint's name.
const lookupTimeout = 5 * time.Second

// checkEndpoint refuses a worker whose cluster endpoint is its own server: it
// would look for the Kubernetes API on itself. On a control plane that is how
// a small cluster begins. A name that does not resolve here may do so there.
func checkEndpoint(ctx context.Context, look lookup, node run.Node, config *talos.Rendered, addresses []string) error {
	host := config.EndpointHost()
	if config.ControlPlane() || host == "" {
		return nil
	}
	at := []string{host}
	if net.ParseIP(host) == nil {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		at, _ = look(ctx, host)
	}
	for _, address := range at {
		if slices.Contains(addresses, address) {
			return fault.Operator("give cluster.controlPlane.endpoint the address of a control plane, or of what stands before them",
				"the cluster endpoint %s of worker %s leads to the worker's own server (%s)", host, node.Name, address)
		}
	}
	return nil
}
