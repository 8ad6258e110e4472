package talos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	// defaultSettle leaves time to pull etcd's image before an accepted
	// bootstrap that shows nothing counts as forgotten.
	defaultSettle  = 3 * time.Minute
	bootstrapPoll  = time.Second
	bootstrapCall  = 30 * time.Second
	endpointAnswer = 5 * time.Second
)

// BootstrapOptions say what is known before a cluster is bootstrapped.
type BootstrapOptions struct {
	Config *Rendered     // of the node: names the cluster's endpoint and its CA
	Asked  time.Time     // when an earlier attempt asked for it; zero: none did
	Settle time.Duration // how long a bootstrap may show nothing before it is asked for again; zero: 3 minutes
	// Commit records that the bootstrap is about to be asked for, or, with the
	// zero time, that it surely was not.
	Commit func(asked time.Time) error
	Report func(step string) // called with what is waited for
}

// Bootstrap starts the cluster's etcd on the control plane at addr and waits
// until the node is a working member. It asks once: what it sees of etcd
// decides, before and after. An answer that was lost, or one after which
// nothing shows, is waited out before it asks again, which the node refuses
// when it has data of etcd. NeedsOperator: the cluster is there already, so
// that a bootstrap would make a second one; or the node refuses for good. When
// the context ends, the error is Transient.
func Bootstrap(ctx context.Context, addr string, cfg *ClientConfig, opts BootstrapOptions) (run.Bootstrapped, error) {
	c, err := newClient(addr, cfg)
	if err != nil {
		return run.Bootstrapped{}, err
	}
	defer func() { _ = c.Close() }()
	if opts.Settle == 0 {
		opts.Settle = defaultSettle
	}
	b := &bootstrap{client: c, opts: opts, asked: opts.Asked}
	watch := &readyWatch{client: c, opts: ReadyOptions{ForeignGrace: defaultForeignGrace}}
	for {
		seen, err := b.look(ctx)
		switch {
		case err == nil && seen.Member():
			return run.Bootstrapped{MemberID: seen.MemberID, Already: b.asked.IsZero()}, nil
		case ctx.Err() != nil:
			return run.Bootstrapped{}, fault.Retry("etcd of the node at %s is not bootstrapped yet (%s): %w", addr, b.step, context.Cause(ctx))
		case err != nil:
			if err := watch.final(err); err != nil {
				return run.Bootstrapped{}, err
			}
			b.report("bootstrap: " + err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(bootstrapPoll):
		}
	}
}

// bootstrap is one attempt to bootstrap a cluster.
type bootstrap struct {
	client *Client
	opts   BootstrapOptions
	asked  time.Time // when it was asked for and may have been heard
	step   string
}

// look looks at etcd, and asks for the bootstrap where that is safe.
func (b *bootstrap) look(ctx context.Context) (Etcd, error) {
	seen, err := b.client.Etcd(ctx)
	switch {
	case err != nil || seen.Member():
		return seen, err
	case seen.Started():
		b.report("bootstrap: etcd has started and is not healthy yet")
		return seen, nil
	case !b.asked.IsZero() && time.Since(b.asked) < b.opts.Settle:
		b.report("bootstrap: asked for, etcd has not started yet")
		return seen, nil
	}
	return seen, b.ask(ctx)
}

func (b *bootstrap) ask(ctx context.Context) error {
	if b.asked.IsZero() {
		if err := clusterAbsent(ctx, b.opts.Config); err != nil {
			return err
		}
	}
	now := time.Now()
	if err := b.commit(now); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, bootstrapCall)
	defer cancel()
	outcome, err := b.client.Bootstrap(call)
	switch {
	case outcome == Refused && err != nil: // surely nothing was done
		return errors.Join(err, b.commit(time.Time{}))
	case outcome == Unknown:
		b.report("bootstrap: the answer was lost, looking at etcd")
	}
	b.asked = now
	return nil
}

func (b *bootstrap) commit(asked time.Time) error {
	if b.opts.Commit == nil {
		return nil
	}
	return b.opts.Commit(asked)
}

func (b *bootstrap) report(step string) {
	if step != b.step && b.opts.Report != nil {
		b.opts.Report(step)
	}
	b.step = step
}

// clusterAbsent refuses a bootstrap of a cluster whose Kubernetes API answers
// with a certificate of the cluster's CA: etcd runs somewhere else. Silence
// proves nothing, for the endpoint may be out of this machine's reach.
func clusterAbsent(ctx context.Context, config *Rendered) error {
	if config == nil || config.kubernetes == nil || len(config.KubernetesCA) == 0 {
		return nil
	}
	host, port := config.kubernetes.Hostname(), config.kubernetes.Port()
	if port == "" {
		port = "443"
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.KubernetesCA) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, endpointAnswer)
	defer cancel()
	c, err := dialTLS(ctx, net.JoinHostPort(host, port), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host})
	if err != nil {
		return nil //nolint:nilerr // nothing of the cluster answers there
	}
	_ = c.Close()
	return fault.Operator("leave `bootstrap: true` out, so that the node joins; or give the new cluster an endpoint and secrets of its own",
		"the Kubernetes API of cluster %s answers at %s already, and a bootstrap would start a second etcd", config.ClusterName, config.Endpoint)
}
