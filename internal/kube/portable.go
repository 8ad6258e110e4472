package kube

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const (
	maxFile = 1 << 20 // bytes of a file that a kubeconfig names
	oneself = "make a kubeconfig with a client certificate or a token of its own, such as `talosctl kubeconfig` does"
)

// inline takes the files that the kubeconfig names into it. A token's file is
// none of them: whoever wrote it there writes another one soon.
func (k *Kubeconfig) inline(dir string) error {
	for _, f := range []struct {
		what string
		path *string
		data *[]byte
	}{
		{"certificate-authority", &k.cluster.CertificateAuthority, &k.cluster.CertificateAuthorityData},
		{"client-certificate", &k.user.ClientCertificate, &k.user.ClientCertificateData},
		{"client-key", &k.user.ClientKey, &k.user.ClientKeyData},
	} {
		path := *f.path
		*f.path = "" // data wins, as for kubectl
		if path == "" || len(*f.data) > 0 {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		data, err := readSmall(path)
		if err != nil {
			return k.refuse("correct the path, or embed it with `kubectl config view --flatten`", "its "+f.what+" names a file that cannot be read")
		}
		*f.data = data
	}
	return nil
}

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		err = errors.New("not a small regular file")
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// check refuses what a worker cannot use, or must not.
func (k *Kubeconfig) check() error {
	return cmp.Or(k.checkCluster(), k.checkUser(), k.checkCertificate())
}

// checkCluster makes sure that the API is reached directly and is nobody else.
func (k *Kubeconfig) checkCluster() error {
	c := k.cluster
	server, err := url.Parse(c.Server)
	switch {
	case err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil:
		return k.refuse("give the API's address as https://HOST:PORT", "its server is no https address without a password")
	case c.InsecureSkipTLSVerify:
		return k.refuse("put the cluster's CA into certificate-authority-data and remove the line", "insecure-skip-tls-verify would take anybody's word for the node")
	case c.ProxyURL != "":
		return k.refuse("use an address that the workers reach directly", "its proxy-url is not used by the workers")
	case c.CertificateAuthority != "":
		return k.refuse("embed it with `kubectl config view --flatten`", "its certificate-authority is a file, which no worker has")
	case len(c.CertificateAuthorityData) > 0 && certificates(c.CertificateAuthorityData) == nil:
		return k.refuse("make a new one with `talosctl kubeconfig`", "its certificate-authority is not a certificate")
	}
	return nil
}

// checkUser makes sure that nothing but the file itself is needed to log in.
func (k *Kubeconfig) checkUser() error {
	u := k.user
	switch {
	case u.Exec != nil:
		return k.refuse(oneself, "its user logs in by running a program (exec), which no worker has")
	case u.AuthProvider != nil:
		return k.refuse(oneself, "its user logs in by an auth-provider, which no worker has")
	case u.TokenFile != "":
		return k.refuse(oneself, "its tokenFile is a file, which no worker has")
	case u.Username != "" || u.Password != "":
		return k.refuse(oneself, "its user logs in by a password, which Kubernetes does not take any more")
	case u.ClientCertificate != "" || u.ClientKey != "":
		return k.refuse("embed them with `kubectl config view --flatten`", "its client certificate or key is a file, which no worker has")
	case u.Token == "" && len(u.ClientCertificateData) == 0:
		return k.refuse(oneself, "its user has no client certificate and no token")
	}
	return nil
}

// checkCertificate looks at the client certificate, where there is one.
func (k *Kubeconfig) checkCertificate() error {
	if len(k.user.ClientCertificateData) == 0 {
		return nil
	}
	pair, err := tls.X509KeyPair(k.user.ClientCertificateData, k.user.ClientKeyData)
	switch {
	case err != nil:
		return k.refuse("make a new one with `talosctl kubeconfig`", "its client certificate and key do not belong together")
	case time.Now().After(pair.Leaf.NotAfter):
		return k.refuse("make a new one with `talosctl kubeconfig`", "its client certificate expired at "+pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}
