// Package kubeapi is the lab's Kubernetes API server: HTTPS with a certificate
// of the cluster's CA, client certificates of it, and nodes as core/v1 has
// them, read alone. Nodes come and change as the lab's kubelets say. No
// scheduler, controller or pod is behind it.
package kubeapi
