package talos

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/ironlot/ironlot/internal/fault"
)

// ClientConfig is one context of a talosconfig: the cluster's CA and a client
// certificate. It prints as the context's name; the key stays inside.
type ClientConfig struct {
	Context  string
	Roles    []string // of the client certificate, such as os:admin
	NotAfter time.Time

	cas  []*x509.Certificate
	cert tls.Certificate
}

// String names the context.
func (c *ClientConfig) String() string { return "talosconfig context " + c.Context }

// GoString is String, so that %#v shows no key either.
func (c *ClientConfig) GoString() string { return c.String() }

// Admin reports whether the certificate may read machine configs.
func (c *ClientConfig) Admin() bool { return slices.Contains(c.Roles, string(role.Admin)) }

// ParseTalosconfig reads one context of a talosconfig, the current one when
// context is empty. A context without certificates, with an expired one, or
// with one that its own CA did not sign is NeedsOperator.
func ParseTalosconfig(data []byte, context string) (*ClientConfig, error) {
	file, err := clientconfig.FromBytes(data)
	if err != nil {
		return nil, fault.Operator("use the talosconfig that `talosctl gen config` made",
			"the talosconfig is not readable: %s", redact(err.Error(), data))
	}
	if context == "" {
		context = file.Context
	}
	ctx := file.Contexts[context]
	if ctx == nil {
		names := slices.Sorted(maps.Keys(file.Contexts))
		return nil, fault.Operator("name one of its contexts: "+strings.Join(names, ", "),
			"the talosconfig has no context %q", context)
	}
	c := &ClientConfig{Context: context}
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	if err := c.check(time.Now()); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *ClientConfig) load(ctx *clientconfig.Context) error {
	refuse := func(what string) error {
		return fault.Operator("make a new one with `talosctl gen config` or `talosctl config new`",
			"talosconfig context %q: %s", c.Context, what)
	}
	if ctx.CA == "" || ctx.Crt == "" || ctx.Key == "" {
		return refuse("ca, crt and key are needed, other ways to log in are not supported")
	}
	var decoded [3][]byte
	for i, field := range []struct{ name, value string }{{"ca", ctx.CA}, {"crt", ctx.Crt}, {"key", ctx.Key}} {
		data, err := base64.StdEncoding.DecodeString(field.value)
		if err != nil {
			return refuse(field.name + " is not base64")
		}
		decoded[i] = data
	}
	for rest := decoded[0]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return refuse("ca is not a certificate")
		}
		c.cas = append(c.cas, ca)
	}
	if len(c.cas) == 0 {
		return refuse("ca is not a certificate")
	}
	cert, err := tls.X509KeyPair(decoded[1], decoded[2])
	if err != nil {
		return refuse("crt and key do not belong together")
	}
	c.cert, c.Roles, c.NotAfter = cert, cert.Leaf.Subject.Organization, cert.Leaf.NotAfter
	return nil
}

// check verifies the client certificate against the context's own CA.
func (c *ClientConfig) check(now time.Time) error {
	remedy := "make a new one with `talosctl config new` or `talosctl gen config`"
	if now.After(c.NotAfter) {
		return fault.Operator(remedy, "talosconfig context %q: the client certificate expired at %s",
			c.Context, c.NotAfter.UTC().Format(time.RFC3339))
	}
	if !signedBy(c.cert.Leaf, c.cas, now) {
		return fault.Operator(remedy, "talosconfig context %q: the client certificate is not valid under the context's own ca", c.Context)
	}
	return nil
}

// MatchesConfig proves that the talosconfig and a machine config are of one
// cluster: this client trusts the CA that signs the node's certificate, and
// the node will accept the client's. Anything else is NeedsOperator.
func (c *ClientConfig) MatchesConfig(r *Rendered) error {
	trusted := slices.ContainsFunc(r.cas, func(ca *x509.Certificate) bool {
		return slices.ContainsFunc(c.cas, ca.Equal)
	})
	if trusted && signedBy(c.cert.Leaf, r.cas, time.Now()) {
		return nil
	}
	return fault.Operator("use the talosconfig and the machine config of the same cluster",
		"talosconfig context %q is of another cluster than %s: CA %s here, CA %s there",
		c.Context, r.origin, short(fingerprint(c.cas[0])), short(r.CAFingerprint))
}

func signedBy(leaf *x509.Certificate, cas []*x509.Certificate, now time.Time) bool {
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool(cas), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

func pool(cas []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, ca := range cas {
		p.AddCert(ca)
	}
	return p
}

// tls is the TLS configuration for a node with the given host name or IP
// address. The chain is verified before the name, so that the certificate of
// another cluster is an unknown authority and nothing else.
func (c *ClientConfig) tls(host string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		ServerName:         host,
		Certificates:       []tls.Certificate{c.cert},
		NextProtos:         []string{"h2"},
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("the server shows no certificate")
			}
			leaf, intermediates := state.PeerCertificates[0], pool(state.PeerCertificates[1:])
			_, err := leaf.Verify(x509.VerifyOptions{Roots: pool(c.cas), Intermediates: intermediates})
			if err != nil {
				return err
			}
			return leaf.VerifyHostname(host)
		},
	}
}
