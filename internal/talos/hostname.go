package talos

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/ironlot/ironlot/internal/fault"
)

// setHostname names the node. Talos 1.13 keeps the name in a HostnameConfig
// document, where a name also needs `auto: off`; older configs keep it in
// machine.network.hostname, and both at once are refused by Talos. A config
// that has another name already is a mistake; a fully qualified form of the
// same name stays as it is.
func setHostname(cfg config.Provider, want, origin string) (config.Provider, error) {
	legacy := cfg.RawV1Alpha1()
	if want == "" || legacy == nil || legacy.MachineConfig == nil {
		return cfg, nil
	}
	cfg = cfg.Clone() // not read-only, so what follows changes it
	legacy, doc := cfg.RawV1Alpha1(), hostnameDocument(cfg)

	name := want
	have := map[string]string{"machine.network.hostname": legacy.Hostname()}
	if doc != nil {
		have["HostnameConfig"] = doc.ConfigHostname
	}
	for where, value := range have {
		switch {
		case value == "" || value == want:
		case strings.HasPrefix(value, want+"."):
			name = value
		default:
			return nil, fault.Operator("remove it from the config or give the node that name in the lot",
				"%s: %s names the node %q, but the lot names it %q", origin, where, value, want)
		}
	}
	if doc == nil {
		setLegacyHostname(legacy.MachineConfig, name)
		return cfg, nil
	}
	if legacy.Hostname() != "" {
		setLegacyHostname(legacy.MachineConfig, "")
	}
	off := nethelpers.AutoHostnameKindOff
	doc.ConfigAuto, doc.ConfigHostname = &off, name
	return cfg, nil
}

func hostnameDocument(cfg config.Provider) *network.HostnameConfigV1Alpha1 {
	for _, doc := range cfg.Documents() {
		if doc, ok := doc.(*network.HostnameConfigV1Alpha1); ok {
			return doc
		}
	}
	return nil
}

func setLegacyHostname(machine *v1alpha1.MachineConfig, name string) {
	if machine.MachineNetwork == nil { //nolint:staticcheck // configs from before Talos 1.12 have it
		machine.MachineNetwork = &v1alpha1.NetworkConfig{} //nolint:staticcheck // as above
	}
	machine.MachineNetwork.NetworkHostname = name //nolint:staticcheck // as above
}
