package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
)

func TestAutoVLAN(t *testing.T) {
	t.Parallel()
	auto := run.Node{ServerName: "em-1", VLAN: run.VLANAuto}
	one := provider.Network{ID: "a", VLAN: 1083, Status: "attached"}
	for name, c := range map[string]struct {
		node     run.Node
		networks []provider.Network
		vlan     uint32
		class    fault.Class // empty: no error
		text     string
	}{
		"not asked for": {run.Node{}, nil, 0, "", ""},
		"one":           {auto, []provider.Network{one}, 1083, "", ""},
		"none":          {auto, nil, 0, fault.NeedsOperator, "needs one private network, and its VLANs are: none"},
		"two":           {auto, []provider.Network{one, {ID: "b", VLAN: 2000}}, 0, fault.NeedsOperator, "its VLANs are: 1083, 2000"},
		"attaching":     {auto, []provider.Network{{ID: "a", Status: "attaching"}}, 0, fault.Transient, "has no VLAN number yet (attaching)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vlan, err := autoVLAN(c.node, c.networks)
			require.Equal(t, c.vlan, vlan)
			if c.class == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, c.class, fault.ClassOf(err))
			require.ErrorContains(t, err, c.text)
		})
	}
}
