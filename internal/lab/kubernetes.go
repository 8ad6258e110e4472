package lab

import (
	"context"

	"github.com/google/uuid"

	"github.com/ironlot/ironlot/internal/lab/kubeapi"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
)

// kubernetes is the endpoint in the lab's machine configs. No Kubernetes API
// answers there: .invalid never resolves (RFC 2606).
const kubernetes = "https://kubernetes.lab.invalid:6443"

// kubernetesPort is where the lab's own API server answers, for the starter
// and the workers alone.
const kubernetesPort = 6443

// startKubernetes starts the API server that nodes register with.
func (f *Fleet) startKubernetes(ctx context.Context) error {
	if !f.opts.Kubernetes {
		return nil
	}
	cert, key := f.cluster.KubernetesCA()
	var err error
	f.kube, err = kubeapi.Start(ctx, f.addr(kubernetesPort), cert, key)
	return err
}

// kubelet is how nodes register, nil where there is no Kubernetes.
func (f *Fleet) kubelet() func(talosnode.Kubelet) {
	if f.kube == nil {
		return nil
	}
	return func(k talosnode.Kubelet) { f.kube.Register(kubeapi.Kubelet(k)) }
}

// systemUUID is that of a server's mainboard, the same in every lab.
func systemUUID(server string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("ironlot lab "+server)).String()
}

// writeKubeconfig writes the kubeconfig that the lot names.
func (f *Fleet) writeKubeconfig() error {
	if f.kube == nil {
		return nil
	}
	data, err := f.kube.Kubeconfig()
	if err != nil {
		return err
	}
	return f.write("kubeconfig", 0o600, string(data))
}

// Kubernetes is the API server that the nodes register with, nil without one.
func (f *Fleet) Kubernetes() *kubeapi.API { return f.kube }
