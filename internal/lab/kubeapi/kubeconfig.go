package kubeapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

var errForbidden = errors.New("the lab lets the group " + admins + " alone read nodes")

// Kubeconfig makes an admin's kubeconfig, as `talosctl kubeconfig` does.
func (a *API) Kubeconfig() ([]byte, error) { return a.KubeconfigFor("admin", admins) }

// KubeconfigFor makes a kubeconfig of a user in groups.
func (a *API) KubeconfigFor(user string, groups ...string) ([]byte, error) {
	cert, err := a.issue(user, groups, nil)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return nil, err
	}
	config := api.NewConfig()
	config.CurrentContext = user + "@lab"
	config.Contexts[config.CurrentContext] = &api.Context{Cluster: "lab", AuthInfo: user}
	config.Clusters["lab"] = &api.Cluster{Server: a.url, CertificateAuthorityData: encode("CERTIFICATE", a.ca.Certificate[0])}
	config.AuthInfos[user] = &api.AuthInfo{
		ClientCertificateData: encode("CERTIFICATE", cert.Certificate[0]), ClientKeyData: encode("PRIVATE KEY", key),
	}
	return clientcmd.Write(*config)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// issue makes a certificate of the cluster's CA: a server's with an address, a
// user's without.
func (a *API) issue(name string, groups []string, address net.IP) (tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if address != nil {
		template.IPAddresses, template.ExtKeyUsage = []net.IP{address}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.ca.Leaf, private.Public(), a.ca.PrivateKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate of the lab's cluster failed: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}
