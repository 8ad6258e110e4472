package talosnode

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// Cluster is what `talosctl gen config` makes for a cluster: real configs
// with secrets of their own.
type Cluster struct {
	Name         string
	ControlPlane []byte // machine config
	Worker       []byte // machine config
	Talosconfig  []byte // with the role os:admin

	input  *generate.Input
	bundle *secrets.Bundle
}

// NewCluster makes a cluster with new secrets. The endpoint is the URL of its
// Kubernetes API, such as https://192.0.2.10:6443.
func NewCluster(name, endpoint string) (*Cluster, error) {
	bundle, err := secrets.NewBundle(secrets.NewFixedClock(time.Now().Add(-time.Minute)), nil)
	if err != nil {
		return nil, fmt.Errorf("making the secrets of cluster %s failed: %w", name, err)
	}
	input, err := generate.NewInput(name, endpoint, constants.DefaultKubernetesVersion, generate.WithSecretsBundle(bundle))
	if err != nil {
		return nil, fmt.Errorf("making the configs of cluster %s failed: %w", name, err)
	}
	c := &Cluster{Name: name, input: input, bundle: bundle}
	if c.ControlPlane, err = c.config(machine.TypeControlPlane); err != nil {
		return nil, err
	}
	if c.Worker, err = c.config(machine.TypeWorker); err != nil {
		return nil, err
	}
	if c.Talosconfig, err = c.TalosconfigFor(role.Admin); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Cluster) config(kind machine.Type) ([]byte, error) {
	cfg, err := c.input.Config(kind)
	if err != nil {
		return nil, fmt.Errorf("making the %s config of cluster %s failed: %w", kind, c.Name, err)
	}
	return cfg.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
}

// TalosconfigFor makes a talosconfig whose certificate has the given roles.
func (c *Cluster) TalosconfigFor(roles ...role.Role) ([]byte, error) {
	input := *c.input
	input.Options.Roles = role.MakeSet(roles...)
	cfg, err := input.Talosconfig()
	if err != nil {
		return nil, fmt.Errorf("making a talosconfig of cluster %s failed: %w", c.Name, err)
	}
	return cfg.Bytes()
}

// KubernetesCA is the CA of the cluster's Kubernetes, in PEM. The key is secret.
func (c *Cluster) KubernetesCA() (cert, key []byte) {
	return c.bundle.Certs.K8s.Crt, c.bundle.Certs.K8s.Key
}

// Secrets lists the cluster's secrets as its configs spell them, so that a
// test can look for them where they must not be.
func (c *Cluster) Secrets() []string {
	b := c.bundle
	out := []string{
		b.Secrets.BootstrapToken, b.Secrets.SecretboxEncryptionSecret, b.TrustdInfo.Token, b.Cluster.Secret,
	}
	for _, key := range [][]byte{
		b.Certs.Etcd.Key, b.Certs.K8s.Key, b.Certs.K8sAggregator.Key, b.Certs.K8sServiceAccount.Key, b.Certs.OS.Key,
	} {
		out = append(out, base64.StdEncoding.EncodeToString(key))
	}
	return out
}
