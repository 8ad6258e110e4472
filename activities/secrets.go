package activities

import (
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/kube"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/talos"
)

// secrets is what a run carries sealed. It lives in memory only.
type secrets struct {
	config *talos.Rendered
	client *talos.ClientConfig

	kubernetes *kube.Kubeconfig // nil: Kubernetes is not asked
}

// open unseals and checks what the run carries.
func (a *Activities) open(in run.PhaseInput) (*secrets, error) {
	if in.Sealed == nil {
		return nil, fault.Operator("start the run again with this release's starter", "the run of node %s carries no machine config", in.Node.Name)
	}
	config, err := seal.Open(in.Sealed.Config, a.identities...)
	if err != nil {
		return nil, err
	}
	lotPart, err := talos.ParseBundle(config)
	if err != nil {
		return nil, err
	}
	var own talos.Bundle
	if in.Sealed.Own != "" {
		data, err := seal.Open(in.Sealed.Own, a.identities...)
		if err != nil {
			return nil, err
		}
		if own, err = talos.ParseBundle(data); err != nil {
			return nil, err
		}
	}
	clientConfig, err := seal.Open(in.Sealed.Talosconfig, a.identities...)
	if err != nil {
		return nil, err
	}
	s := &secrets{}
	var vlan uint32
	if in.Facts.Preflight != nil {
		vlan = in.Facts.Preflight.VLAN
	}
	if s.config, err = talos.Render(lotPart.Input(own, in.Node.Name, in.Node.Values(vlan))); err != nil {
		return nil, err
	}
	if s.client, err = talos.ParseTalosconfig(clientConfig, ""); err != nil {
		return nil, err
	}
	if in.Sealed.Kubeconfig != "" {
		data, err := seal.Open(in.Sealed.Kubeconfig, a.identities...)
		if err != nil {
			return nil, err
		}
		if s.kubernetes, err = kube.Parse(data); err != nil {
			return nil, err
		}
	}
	return s, s.client.MatchesConfig(s.config)
}
