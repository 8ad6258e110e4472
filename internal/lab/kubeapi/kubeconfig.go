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
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/ironlot/ironlot/internal/lab/cert"
)

var errForbidden = errors.New("the lab lets the group " + admins + " alone read nodes")

// Kubeconfig makes an admin's kubeconfig, as `talosctl kubeconfig` does.
func (a *API) Kubeconfig() ([]byte, error) { return a.KubeconfigFor("admin", admins) }

// KubeconfigFor makes a kubeconfig of a user in groups.
func (a *API) KubeconfigFor(user string, groups ...string) ([]byte, error) {
	return a.KubeconfigUntil(time.Time{}, user, groups...)
}

// KubeconfigUntil is KubeconfigFor with the time at which the client's
// certificate expires; zero: in a day.
func (a *API) KubeconfigUntil(expires time.Time, user string, groups ...string) ([]byte, error) {
	client, err := a.issue(cert.Request{
		Subject: pkix.Name{CommonName: user, Organization: groups}, Usage: x509.ExtKeyUsageClientAuth, NotAfter: expires,
	})
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	if err != nil {
		return nil, err
	}
	config := api.NewConfig()
	config.CurrentContext = user + "@lab"
	config.Contexts[config.CurrentContext] = &api.Context{Cluster: "lab", AuthInfo: user}
	config.Clusters["lab"] = &api.Cluster{Server: a.url, CertificateAuthorityData: encode("CERTIFICATE", a.ca.Certificate[0])}
	config.AuthInfos[user] = &api.AuthInfo{
		ClientCertificateData: encode("CERTIFICATE", client.Certificate[0]), ClientKeyData: encode("PRIVATE KEY", key),
	}
	return clientcmd.Write(*config)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// issue makes a certificate of the cluster's CA.
func (a *API) issue(r cert.Request) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	return cert.Issue(r, key, &a.ca)
}
