// Package cert makes the certificates of the lab's servers and clients.
package cert

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Request is what a certificate is for.
type Request struct {
	Subject   pkix.Name
	Usage     x509.ExtKeyUsage // of a server or of a client
	DNSNames  []string
	Addresses []net.IP
	NotAfter  time.Time // zero: in a day
}

// Issue makes a certificate for a key, signed by a CA, or by itself where ca
// is nil.
func Issue(r Request, key crypto.Signer, ca *tls.Certificate) (tls.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	if r.NotAfter.IsZero() {
		r.NotAfter = time.Now().Add(24 * time.Hour)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      r.Subject,
		NotBefore:    r.NotAfter.Add(-24*time.Hour - time.Minute),
		NotAfter:     r.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{r.Usage},
		DNSNames:     r.DNSNames,
		IPAddresses:  r.Addresses,
	}
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate of the lab failed: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
