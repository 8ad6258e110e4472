package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ironlot/ironlot/internal/lab/cert"
	"github.com/ironlot/ironlot/internal/listen"
)

// admins is the group that Kubernetes lets do everything.
const admins = "system:masters"

// API is a running API server.
type API struct {
	ca    tls.Certificate
	users *x509.CertPool
	url   string
	web   *http.Server

	mu     sync.Mutex
	nodes  map[string]*corev1.Node
	broken bool
}

// Start serves at an address; port 0 picks one. The CA is that of the
// cluster's configs, in PEM. It runs until Close.
func Start(ctx context.Context, addr string, caCert, caKey []byte) (*API, error) {
	ca, err := tls.X509KeyPair(caCert, caKey)
	if err != nil {
		return nil, fmt.Errorf("the lab's Kubernetes API has no CA: %w", err)
	}
	a := &API{ca: ca, users: x509.NewCertPool(), nodes: map[string]*corev1.Node{}}
	a.users.AddCert(ca.Leaf)
	listener, err := listen.TCP(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("the lab's Kubernetes API cannot listen: %w", err)
	}
	host, _, _ := net.SplitHostPort(listener.Addr().String())
	server, err := a.issue(cert.Request{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, Usage: x509.ExtKeyUsageServerAuth, Addresses: []net.IP{net.ParseIP(host)},
	})
	if err != nil {
		return nil, err
	}
	a.url = "https://" + listener.Addr().String()
	a.web = &http.Server{Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server}, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.RequestClientCert, // who it is, is found out later: others get a 401
	}}
	go a.web.ServeTLS(listener, "", "") //nolint:errcheck // it ends by Close
	return a, nil
}

// URL is where the API answers.
func (a *API) URL() string { return a.url }

// Close ends the server and its connections.
func (a *API) Close() error { return a.web.Close() }

// Break makes the API answer with errors, or end that.
func (a *API) Break(broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = broken
}

// Edit changes a node; one that is not there yet comes to be.
func (a *API) Edit(name string, change func(*corev1.Node)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	node := &corev1.Node{}
	if old := a.nodes[name]; old != nil {
		node = old.DeepCopy()
	}
	node.Name = name
	change(node)
	a.nodes[name] = node
}

// Kubelet is what a node's kubelet, and the cloud controller manager after it,
// tell of the node.
type Kubelet struct {
	Name       string
	Address    string
	SystemUUID string
	ProviderID string
	Labels     map[string]string
	Ready      bool
	Tainted    bool // no cloud controller manager has initialized it
}

// Register takes what a kubelet tells. What others have set stays.
func (a *API) Register(k Kubelet) {
	a.Edit(k.Name, func(n *corev1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		maps.Copy(n.Labels, k.Labels)
		if n.Spec.ProviderID == "" { // it never changes
			n.Spec.ProviderID = k.ProviderID
		}
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized })
		if k.Tainted {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
		}
		condition := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady"}
		if k.Ready {
			condition.Status, condition.Reason = corev1.ConditionTrue, "KubeletReady"
		}
		n.Status.Conditions = []corev1.NodeCondition{condition}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: k.Address}}
		n.Status.NodeInfo = corev1.NodeSystemInfo{SystemUUID: k.SystemUUID, OSImage: "Ironlot lab, simulated"}
	})
}

const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
