package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/ironlot/ironlot/internal/fault"
)

// callWithin bounds one question to the Kubernetes API.
const callWithin = 15 * time.Second

// ErrNoNode says that the cluster has no node of the name.
var ErrNoNode = errors.New("it has no node of this name")

// Client asks a cluster's Kubernetes API.
type Client struct {
	rest   rest.Interface
	server string
}

// NewClient makes a client and connects to nothing. It knows core/v1 alone,
// without the other API groups of client-go's clientset.
func NewClient(k *Kubeconfig) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	r, err := rest.RESTClientFor(&rest.Config{
		Host: k.Server, APIPath: "/api", BearerToken: k.user.Token, UserAgent: "ironlot", Timeout: callWithin,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: k.cluster.CertificateAuthorityData, ServerName: k.cluster.TLSServerName,
			CertData: k.user.ClientCertificateData, KeyData: k.user.ClientKeyData,
		},
		Impersonate: rest.ImpersonationConfig{
			UserName: k.user.Impersonate, UID: k.user.ImpersonateUID, Groups: k.user.ImpersonateGroups, Extra: k.user.ImpersonateUserExtra,
		},
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	})
	if err != nil {
		return nil, fault.Operator("make a new one with `talosctl kubeconfig`", "%s cannot be used", k)
	}
	return &Client{rest: r, server: k.Server}, nil
}

// Node gets a node by its name. ErrNoNode: there is none. NeedsOperator: the
// API refuses the client, or is not the kubeconfig's. All else is Transient.
func (c *Client) Node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := c.rest.Get().Resource("nodes").Name(name).MaxRetries(0).Do(ctx).Into(node)
	if err != nil {
		return nil, c.explain(err)
	}
	return node, nil
}

// explain gives an error its class. Texts of the API are not quoted: what a
// proxy before it says may hold anything.
func (c *Client) explain(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid *tls.CertificateVerificationError
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "nodes":
		return ErrNoNode
	case apierrors.IsUnauthorized(err):
		return fault.Operator("make a new kubeconfig with `talosctl kubeconfig`, then retry with the lot file (--batch)",
			"the Kubernetes API at %s does not know the kubeconfig's user (401)", c.server)
	case apierrors.IsForbidden(err):
		return fault.Operator("allow the kubeconfig's user to get nodes (ClusterRole with get on nodes)",
			"the Kubernetes API at %s does not let the kubeconfig's user read nodes (403)", c.server)
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return fault.Operator("use the kubeconfig of the cluster that the nodes join",
			"the certificate of the Kubernetes API at %s is not one that the kubeconfig trusts", c.server)
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest:
		return fault.Retry("the Kubernetes API at %s answers with status %d", c.server, status.Status().Code)
	}
	return fault.Retry("the Kubernetes API at %s does not answer (%s)", c.server, cause(err))
}

// cause says in a word why there was no answer.
func cause(err error) string {
	var timeout net.Error
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &lookup):
		return "its name is not resolved"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	default:
		return "the connection failed"
	}
}
