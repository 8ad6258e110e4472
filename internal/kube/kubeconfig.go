package kube

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/ironlot/ironlot/internal/fault"
)

// Kubeconfig is the current context of a kubeconfig, self-contained. It
// prints as the context's name; the credentials stay inside.
type Kubeconfig struct {
	Context string
	Server  string // URL of the Kubernetes API

	cluster *api.Cluster
	user    *api.AuthInfo
}

// String names the context.
func (k *Kubeconfig) String() string { return "kubeconfig context " + k.Context }

// GoString is String, so that %#v shows no key either.
func (k *Kubeconfig) GoString() string { return k.String() }

// Read reads a kubeconfig where the person is: certificates and keys in files
// that it names, relative to dir, are taken into it. What a worker could not
// use, or what would make it trust anybody, is NeedsOperator. No error quotes
// the file's values.
func Read(data []byte, dir string) (*Kubeconfig, error) {
	k, err := parse(data)
	if err != nil {
		return nil, err
	}
	if err := k.inline(dir); err != nil {
		return nil, err
	}
	return k, k.check()
}

// Parse reads what Encode made. It opens no file.
func Parse(data []byte) (*Kubeconfig, error) {
	k, err := parse(data)
	if err != nil {
		return nil, err
	}
	return k, k.check()
}

// Encode writes the one context with all that it needs. It is secret.
func (k *Kubeconfig) Encode() ([]byte, error) {
	one := api.NewConfig()
	one.CurrentContext = k.Context
	one.Contexts[k.Context] = &api.Context{Cluster: k.Context, AuthInfo: k.Context}
	one.Clusters[k.Context], one.AuthInfos[k.Context] = k.cluster, k.user
	return clientcmd.Write(*one)
}

// Trusts reports whether the kubeconfig trusts a CA, given in PEM.
func (k *Kubeconfig) Trusts(ca []byte) bool {
	block, _ := pem.Decode(ca)
	if block == nil {
		return false
	}
	for rest := k.cluster.CertificateAuthorityData; ; {
		var one *pem.Block
		if one, rest = pem.Decode(rest); one == nil {
			return false
		}
		if slices.Equal(one.Bytes, block.Bytes) {
			return true
		}
	}
}

func parse(data []byte) (*Kubeconfig, error) {
	all, err := clientcmd.Load(data)
	if err != nil { // its text quotes the file
		return nil, fault.Operator("use the file that `talosctl kubeconfig` makes", "the kubeconfig is not readable")
	}
	context := all.Contexts[all.CurrentContext]
	if context == nil {
		return nil, fault.Operator("choose one with `kubectl config use-context`: "+strings.Join(slices.Sorted(maps.Keys(all.Contexts)), ", "),
			"the current-context %q of the kubeconfig is none of its contexts", all.CurrentContext)
	}
	k := &Kubeconfig{Context: all.CurrentContext, cluster: all.Clusters[context.Cluster], user: all.AuthInfos[context.AuthInfo]}
	if k.cluster == nil || k.user == nil {
		return nil, k.refuse("make a new one with `talosctl kubeconfig`", "its cluster or its user is not in the file")
	}
	k.Server = k.cluster.Server
	k.cluster.Extensions, k.user.Extensions = nil, nil
	return k, nil
}

// refuse makes an error about the context.
func (k *Kubeconfig) refuse(remedy, what string) error {
	return fault.Operator(remedy, "kubeconfig context %q: %s", k.Context, what)
}

// certificates parses PEM, nil when there is anything but certificates in it.
func certificates(data []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return all
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		all = append(all, one)
	}
}
