package talosnode

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/ironlot/ironlot/internal/lab/cert"
)

// issue makes a server certificate for a host name and an IP address, signed
// by the given CA, or by itself where there is none: the one of maintenance.
func issue(name, host string, ca *tls.Certificate) (tls.Certificate, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	r := cert.Request{Subject: pkix.Name{CommonName: name}, Usage: x509.ExtKeyUsageServerAuth, DNSNames: []string{name}}
	if ip := net.ParseIP(host); ip != nil {
		r.Addresses = []net.IP{ip}
	}
	return cert.Issue(r, private, ca)
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
