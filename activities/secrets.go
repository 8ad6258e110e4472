package activities

import (
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/talos"
)

// secrets is what a run carries sealed. It lives in memory only.
type secrets struct {
	config *talos.Rendered
	client *talos.ClientConfig
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
	clientConfig, err := seal.Open(in.Sealed.Talosconfig, a.identities...)
	if err != nil {
		return nil, err
	}
	s := &secrets{}
	if s.config, err = talos.Inspect(talos.Named{Name: "the machine config of " + in.Node.Name, Data: config}); err != nil {
		return nil, err
	}
	if s.client, err = talos.ParseTalosconfig(clientConfig, ""); err != nil {
		return nil, err
	}
	return s, s.client.MatchesConfig(s.config)
}
