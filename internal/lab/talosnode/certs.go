package talosnode

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
)

// issue makes a server certificate for a host name and an IP address, signed
// by the given CA, or by itself where there is none: the one of maintenance.
func issue(name, host string, ca *tls.Certificate) (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{name},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	parent, key := template, any(private)
	if ca != nil {
		parent, key = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

// maintenanceTLS serves everybody.
func maintenanceTLS(cert tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
}

// configuredTLS serves clients with a certificate of the config's CAs.
func configuredTLS(cert tls.Certificate, cfg config.Provider) *tls.Config {
	clients := x509.NewCertPool()
	if ca := cfg.Machine().Security().IssuingCA(); ca != nil {
		clients.AppendCertsFromPEM(ca.Crt)
	}
	for _, ca := range cfg.Machine().Security().AcceptedCAs() {
		clients.AppendCertsFromPEM(ca.Crt)
	}
	out := maintenanceTLS(cert)
	out.ClientAuth, out.ClientCAs = tls.RequireAndVerifyClientCert, clients
	return out
}
