// Package kube asks the Kubernetes API of a cluster about one node: a second
// opinion beside what Talos says of it. The kubeconfig travels sealed from the
// starter to the workers, so it is made self-contained first.
package kube
