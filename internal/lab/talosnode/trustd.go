package talosnode

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
)

// Trustd is the running control planes that a lab's nodes can reach. A worker
// has no CA key: its API opens only once a control plane's trustd has signed
// its certificate, against the machine token. It stands for the service on
// port 50001, in this process.
type Trustd struct {
	mu      sync.Mutex
	signers map[string]tls.Certificate // by CA certificate and token
	changed chan struct{}              // closed at every change
}

// NewTrustd makes a world without control planes.
func NewTrustd() *Trustd {
	return &Trustd{signers: map[string]tls.Certificate{}, changed: make(chan struct{})}
}

// Serve brings up the control plane of a cluster, given one of its
// control-plane configs: from now on its nodes can join.
func (t *Trustd) Serve(controlPlane []byte) error {
	cfg, err := configloader.NewFromBytes(controlPlane)
	if err != nil || !cfg.CompleteForBoot() {
		return fmt.Errorf("the lab's control plane needs a complete machine config")
	}
	ca := cfg.Machine().Security().IssuingCA()
	if ca == nil {
		return fmt.Errorf("the lab's control plane needs a config with machine.ca")
	}
	signer, err := tls.X509KeyPair(ca.Crt, ca.Key)
	if err != nil {
		return fmt.Errorf("the lab's control plane needs a control-plane config, with the key of machine.ca")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signers[signerKey(cfg)] = signer
	close(t.changed)
	t.changed = make(chan struct{})
	return nil
}

// signer waits for the control plane that a config joins.
func (t *Trustd) signer(ctx context.Context, cfg config.Provider) (tls.Certificate, error) {
	for {
		t.mu.Lock()
		signer, ok := t.signers[signerKey(cfg)]
		changed := t.changed
		t.mu.Unlock()
		if ok {
			return signer, nil
		}
		select {
		case <-ctx.Done():
			return tls.Certificate{}, ctx.Err()
		case <-changed:
		}
	}
}

// signerKey is what a node and its control plane must agree on.
func signerKey(cfg config.Provider) string {
	security := cfg.Machine().Security()
	if security.IssuingCA() == nil {
		return ""
	}
	return string(security.IssuingCA().Crt) + security.Token()
}
