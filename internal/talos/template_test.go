package talos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/talos"
)

const vlanPatch = `apiVersion: v1alpha1
kind: DHCPv4Config
name: eno1
---
apiVersion: v1alpha1
kind: VLANConfig
name: eno1.${ironlot.vlan}
vlanID: ${ironlot.vlan}
parent: eno1
addresses:
  - address: "${ironlot.address}"
`

func TestValues(t *testing.T) {
	t.Parallel()
	labels := patch("labels.yaml", "machine:\n  nodeLabels:\n    rack: \"${ironlot.rack}\"\n  env:\n    HOME_OF: ${HOME} and ${ironlot.rack}\n")
	r, err := talos.Render(talos.RenderInput{
		Base: worker(t), Patches: []talos.Named{patch("vlan.yaml", vlanPatch), labels}, Hostname: "node-1",
		Values: map[string]string{"vlan": "1083", "address": "10.0.0.7/24", "rack": "12"},
	})
	require.NoError(t, err)
	require.Equal(t, []uint32{1083}, r.VLANs)
	text := string(r.Bytes)
	require.Contains(t, text, "name: eno1.1083\n")
	require.Contains(t, text, "10.0.0.7/24")
	require.Contains(t, text, `rack: "12"`, "in quotes it stays text")
	require.Contains(t, text, "${HOME} and 12", "other placeholders are not ours")
	require.NotContains(t, text, "${ironlot.")
}

// TestValuesAreScalars: a value never becomes structure.
func TestValuesAreScalars(t *testing.T) {
	t.Parallel()
	evil := "x\nmachine:\n  token: mine"
	labels := patch("labels.yaml", "machine:\n  env:\n    A: ${ironlot.rack}\n")
	r, err := talos.Render(talos.RenderInput{Base: worker(t), Patches: []talos.Named{labels}, Values: map[string]string{"rack": evil}})
	require.NoError(t, err)
	plain, err := talos.Render(talos.RenderInput{Base: worker(t)})
	require.NoError(t, err)
	require.Equal(t, plain.CAFingerprint, r.CAFingerprint)
	require.NotContains(t, string(r.Bytes), "\n  token: mine")
}

func TestUnknownValues(t *testing.T) {
	t.Parallel()
	_, err := talos.Render(talos.RenderInput{
		Base:    worker(t),
		Patches: []talos.Named{patch("a.yaml", "machine:\n  env:\n    A: ${ironlot.rak}\n    B: ${ironlot.}\n"), patch("b.yaml", "machine:\n  env: {C: \"${ironlot.vlan}\"}\n")},
		Values:  map[string]string{"rack": "1", "name": "n"},
	})
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	for _, want := range []string{
		`a.yaml line 3: "${ironlot.rak}" is no value of this node`, `a.yaml line 4: "${ironlot.}"`,
		`b.yaml line 2: "${ironlot.vlan}"`, "use one of name, rack",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	base := worker(t)
	shared := talos.Bundle{Base: &base, Patches: []talos.Named{patch("lot.yaml", "machine:\n  env: {A: \"${ironlot.rack}\", B: lot}\n")}, Values: map[string]string{"rack": "1"}}
	own := talos.Bundle{Patches: []talos.Named{patch("own.yaml", "machine:\n  env: {B: own}\n")}, Values: map[string]string{"rack": "2"}}
	var back [2]talos.Bundle
	for i, b := range []talos.Bundle{shared, own} {
		data, err := b.Encode()
		require.NoError(t, err)
		back[i], err = talos.ParseBundle(data)
		require.NoError(t, err)
		require.False(t, b.Empty())
	}
	want, err := talos.Render(shared.Input(own, "node-1", map[string]string{"rack": "0"}))
	require.NoError(t, err)
	got, err := talos.Render(back[0].Input(back[1], "node-1", map[string]string{"rack": "0"}))
	require.NoError(t, err)
	require.Equal(t, want.SHA256, got.SHA256)
	require.Contains(t, string(got.Bytes), `A: "2"`)
	require.Contains(t, string(got.Bytes), "B: own")

	_, err = talos.ParseBundle([]byte("version: canary"))
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.NotContains(t, err.Error(), "canary")
	require.True(t, talos.Bundle{}.Empty())
}
