package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"reflect"
	"sync"
	"syscall"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// alertCertificateRequired is the TLS alert of a server that wants a client
// certificate (RFC 8446, section 6).
const alertCertificateRequired = 116

// conn is a TLS connection that remembers why reading from it ended. gRPC
// keeps only the text of that error; its type says what the node is.
type conn struct {
	*tls.Conn
	heard []byte // what the server said first, not read yet

	mu  sync.Mutex
	end error
}

// firstWordWithin bounds the wait for what the server says first.
const firstWordWithin = 3 * time.Second

// dialTLS connects and shakes hands within the context.
func dialTLS(ctx context.Context, addr string, cfg *tls.Config) (*conn, error) {
	// A machine that was cut off says nothing: notice it within half a minute.
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4,
	}}
	raw, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	listening := &conn{Conn: c}
	if err := listening.listen(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return listening, nil
}

// listen waits for the server's first byte before anything is sent to it. In
// TLS 1.3 a server refuses a client after the client's handshake has ended;
// what is written meanwhile makes the kernel answer with a reset, and the
// alert that says why is lost. A gRPC server speaks first when it is content.
func (c *conn) listen(ctx context.Context) error {
	until := time.Now().Add(firstWordWithin)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	_ = c.SetReadDeadline(until)
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	first := make([]byte, 1)
	n, err := c.Conn.Read(first)
	if err != nil && (!timedOut(err) || ctx.Err() != nil) {
		return err
	}
	c.heard = first[:n] // nothing in time: what comes of the first call tells
	return c.SetReadDeadline(time.Time{})
}

// Read keeps the first error.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.heard) > 0 && len(p) > 0 {
		n := copy(p, c.heard)
		c.heard = c.heard[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		c.mu.Lock()
		if c.end == nil {
			c.end = err
		}
		c.mu.Unlock()
	}
	return n, err
}

// ended gives the error that ended reading, nil while the connection is open.
func (c *conn) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// grpcOver makes a gRPC client whose connections come from dial, which does
// TLS itself. Nothing is retried: callers know what a second try would mean.
func grpcOver(addr string, dial func(context.Context) (net.Conn, error)) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithNoProxy(), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: handshakeTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize)),
	)
}

// once gives an established connection to gRPC, and never another one.
func once(c net.Conn) func(context.Context) (net.Conn, error) {
	given := make(chan net.Conn, 1)
	given <- c
	return func(ctx context.Context) (net.Conn, error) {
		select {
		case c := <-given:
			return c, nil
		default:
			return nil, net.ErrClosed
		}
	}
}

// alertOf gives the number of the TLS alert that the other side sent, 0 when
// the error is none. crypto/tls keeps the alert's type to itself outside of
// QUIC, but its kind and value can be seen.
func alertOf(err error) uint8 {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0
	}
	if v := reflect.ValueOf(op.Err); v.Kind() == reflect.Uint8 {
		return uint8(v.Uint())
	}
	return 0
}

// cut reports whether the other side ended the connection without a word.
func cut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED)
}

// timedOut reports whether an error is a deadline of ours or of the kernel.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// unroutable reports whether no way leads to the host, as while it boots.
func unroutable(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.Is(err, syscall.EHOSTDOWN)
}
