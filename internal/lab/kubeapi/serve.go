package kubeapi

import (
	"crypto/x509"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (a *API) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes", a.list)
	mux.HandleFunc("GET /api/v1/nodes/{name}", a.get)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, strings.ToLower(r.Method), corev1.Resource(""), "", "", 0, true))
	})
	return a.authorized(mux)
}

// authorized lets admins of the cluster in and nobody else.
func (a *API) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		broken := a.broken
		a.mu.Unlock()
		user := a.user(r)
		switch {
		case broken:
			fail(w, apierrors.NewServiceUnavailable("the lab has broken this API"))
		case user == nil:
			fail(w, apierrors.NewUnauthorized("Unauthorized"))
		case !slices.Contains(user.Subject.Organization, admins):
			fail(w, apierrors.NewForbidden(corev1.Resource("nodes"), r.PathValue("name"), errForbidden))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// user is who asks, nil for nobody of the cluster.
func (a *API) user(r *http.Request) *x509.Certificate {
	if len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	leaf := r.TLS.PeerCertificates[0]
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: a.users, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return nil
	}
	return leaf
}

func (a *API) get(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	node := a.nodes[r.PathValue("name")]
	a.mu.Unlock()
	if node == nil {
		fail(w, apierrors.NewNotFound(corev1.Resource("nodes"), r.PathValue("name")))
		return
	}
	whole := *node
	whole.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
	answer(w, http.StatusOK, whole)
}

func (a *API) list(w http.ResponseWriter, _ *http.Request) {
	all := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
	a.mu.Lock()
	for _, node := range a.nodes {
		all.Items = append(all.Items, *node)
	}
	a.mu.Unlock()
	slices.SortFunc(all.Items, func(x, y corev1.Node) int { return strings.Compare(x.Name, y.Name) })
	answer(w, http.StatusOK, all)
}

// fail answers with the Status object that the real API gives.
func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	answer(w, int(status.Code), status)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}
