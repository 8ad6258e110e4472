package temporal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lookTimeout bounds each step of a look at an address that did not answer.
const lookTimeout = 3 * time.Second

// The remedies.
const (
	startOrName = "start one with `starter up`, or name the right one with --address or TEMPORAL_ADDRESS"
	checkHost   = "check the host in --address, TEMPORAL_ADDRESS or the profile"
	checkPort   = "check the port in --address, TEMPORAL_ADDRESS or the profile (7233 is usual; 8233 is the Web UI)"
	checkRights = "check TEMPORAL_API_KEY, the client certificate and the namespace's permissions"
	withTLS     = "set TEMPORAL_TLS=true, or tls in the profile"
	withoutTLS  = "leave out TEMPORAL_TLS, TEMPORAL_TLS_* and TEMPORAL_API_KEY, or name a port with TLS"
	checkTLS    = "check TEMPORAL_TLS_SERVER_CA_CERT_PATH, TEMPORAL_TLS_SERVER_NAME and the client certificate"
)

// why says in words for people what kept the client from the server, and what
// to do. gRPC tells it in text alone, which must not be matched, so it looks for
// itself.
func why(ctx context.Context, o client.Options, err error) (reason, remedy string) {
	var denied *serviceerror.PermissionDenied
	if errors.As(err, &denied) || status.Code(err) == codes.Unauthenticated {
		return "it refuses who asks: " + Plain(err), checkRights
	}
	address := strings.TrimPrefix(o.HostPort, "dns:///")
	host, _, splitErr := net.SplitHostPort(address)
	proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	switch {
	case splitErr != nil, strings.Contains(address, ":///"): // a resolver of gRPC's own
		return Plain(err), startOrName
	case proxy != nil:
		return fmt.Sprintf("%s, through the proxy %s", Plain(err), proxy.Host), startOrName + "; HTTPS_PROXY and NO_PROXY say whether a proxy is asked"
	}
	conn, dialErr := (&net.Dialer{Timeout: lookTimeout}).DialContext(ctx, "tcp", address)
	if dialErr != nil {
		return unreached(host, dialErr)
	}
	defer func() { _ = conn.Close() }()
	if o.ConnectionOptions.TLS != nil {
		return badTLS(ctx, conn, host, o.ConnectionOptions.TLS)
	}
	return noTLS(ctx, conn, err)
}

// unreached is why no connection came to be.
func unreached(host string, err error) (reason, remedy string) {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("there is no host of the name %s", host), checkHost
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s cannot be looked up", host), checkHost
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there", startOrName
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no connection within %s", lookTimeout), checkHost + ", and firewalls on the way"
	default:
		return err.Error(), startOrName
	}
}

// badTLS is why a server that takes connections is of no use with TLS.
func badTLS(ctx context.Context, conn net.Conn, host string, config *tls.Config) (reason, remedy string) {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName = host
	}
	err := handshake(ctx, conn, config)
	switch {
	case err == nil:
		return "what listens there speaks TLS, and is no Temporal that takes this client", checkTLS
	case errors.As(err, new(tls.RecordHeaderError)):
		return "what listens there speaks no TLS, and the settings ask for it", withoutTLS
	case errors.Is(err, context.DeadlineExceeded):
		return "it takes connections and says nothing", checkPort
	default:
		return "its TLS fails: " + err.Error(), checkTLS
	}
}

// noTLS is why a server that takes connections is of no use without TLS.
func noTLS(ctx context.Context, conn net.Conn, err error) (reason, remedy string) {
	greeting := handshake(ctx, conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is said over it
	var late *serviceerror.DeadlineExceeded
	var alert *net.OpError
	switch {
	case greeting == nil, errors.As(greeting, &alert) && alert.Op == "remote error":
		return "what listens there speaks TLS, and the settings ask for none", withTLS
	case errors.Is(greeting, context.DeadlineExceeded):
		return "it takes connections and says nothing", checkPort
	case errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it has said nothing within %s", dialTimeout), "try again: it may be starting, or busy"
	default:
		return "what listens there is no Temporal", checkPort
	}
}

func handshake(ctx context.Context, conn net.Conn, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return tls.Client(conn, config).HandshakeContext(ctx)
}

// Plain is an error of Temporal's client without what gRPC wraps around it.
// It is for eyes alone: nothing is decided by it.
func Plain(err error) string {
	text := err.Error()
	for {
		before, inner, ok := strings.Cut(text, `connection error: desc = "`)
		if !ok {
			break
		}
		text = before + strings.Replace(inner, `"`, "", 1)
	}
	for _, noise := range []string{"failed reaching server: ", "transport: ", "Error while dialing: "} {
		text = strings.ReplaceAll(text, noise, "")
	}
	return strings.TrimSuffix(text, ".")
}
