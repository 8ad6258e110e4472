package lot

import (
	"fmt"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/talos"
)

// TestThousandNodesFit: the largest lot, each node with a patch and values of
// its own, sealed to two recipients, stays below Temporal's limits: 2 MiB for
// one payload and 50 MiB for the history of the lot, in which each node's
// input stands whole.
func TestThousandNodesFit(t *testing.T) {
	t.Parallel()
	l, err := Load(lottest.Lot(t, "large", 2))
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	worker, node := rendered.parts[1], rendered.nodes[1]
	for i := len(rendered.nodes); i < MaxNodes; i++ {
		p, n := worker, node
		n.Name, n.ServerName = fmt.Sprintf("rack-1-worker-%04d", i), fmt.Sprintf("em-a410x-ssd-%04d", i)
		n.Delivery, n.VLAN = run.ByState, run.VLANAuto
		p.own = talos.Bundle{
			Values: map[string]string{"address": fmt.Sprintf("10.0.%d.%d/16", i/250, i%250+1)},
			Patches: []talos.Named{{Name: fmt.Sprintf("patches/worker-%04d.yaml", i), Data: fmt.Appendf(nil,
				"machine:\n  nodeLabels:\n    topology.kubernetes.io/zone: fr-par-2\n    rack: rack-%d\n    slot: \"%d\"\n", i/40, i%40)}},
		}
		rendered.nodes, rendered.parts = append(rendered.nodes, n), append(rendered.parts, p)
		rendered.digests = append(rendered.digests, fmt.Sprintf("%016x", i))
	}
	var recipients []age.Recipient
	for range 2 {
		identity, err := age.GenerateX25519Identity()
		require.NoError(t, err)
		recipients = append(recipients, identity.Recipient())
	}
	inputs, err := rendered.Seal(func(plaintext []byte) (string, error) { return seal.Seal(plaintext, recipients...) })
	require.NoError(t, err)
	in := run.LotInput{Lot: l.Name, Nodes: inputs}.Share()
	size := func(value any) int {
		payload, err := converter.GetDefaultDataConverter().ToPayload(value)
		require.NoError(t, err)
		return len(payload.GetData())
	}
	lot, children := size(in), 0
	for i := range in.Nodes {
		children += size(in.Node(i))
	}
	t.Logf("%d nodes: input of the lot %d KiB, of all nodes together %d KiB", MaxNodes, lot>>10, children>>10)
	require.Less(t, lot, 2<<20-128<<10)
	require.Less(t, children, 30<<20)
}
