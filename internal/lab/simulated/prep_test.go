package simulated

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/inventory"
	"github.com/ironlot/ironlot/internal/agent/prep"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/run"
)

// The agent's own disk preparation on what the provider delivers: everything
// that it must take down and erase is there, and afterwards rescue finds no
// array any more.
func TestTheAgentPreparesDeliveredDisks(t *testing.T) {
	t.Parallel()
	for _, delivered := range []Delivered{RAID1, LVM} {
		t.Run(string(delivered), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, func(o *Options) { o.Delivered, o.SwapNames = delivered, true })
			bootAs(t, m, hardware.BootRescue, InRescue)
			h := &rescueHost{b: m.boot, root: true}
			before, err := inventory.Take(t.Context(), h)
			require.NoError(t, err)
			require.Contains(t, signatures(before), "linux_raid_member")
			require.Contains(t, signatures(before), "swap")

			spec := api.DiskPrepSpec{System: identity(m, 1), Secondary: []run.Disk{identity(m, 2)}}
			done, err := prep.Run(t.Context(), h, spec, report.Discard{})
			require.NoError(t, err)
			require.NotEmpty(t, done.Released)
			require.NotEmpty(t, done.Cleared)

			bootAs(t, m, hardware.BootRescue, InRescue)
			h = &rescueHost{b: m.boot, root: true}
			after, err := inventory.Take(t.Context(), h)
			require.NoError(t, err)
			for _, d := range after.Disks {
				require.Empty(t, d.Holders)
				require.Empty(t, d.Parts)
				require.Equal(t, "gpt", d.Table)
			}
			again, err := prep.Run(t.Context(), h, spec, report.Discard{})
			require.NoError(t, err)
			require.Empty(t, again.Released)
			require.Empty(t, again.Cleared)
			for _, count := range m.Boots()[1].Disks {
				require.Zero(t, count.BytesWritten+count.BytesZeroed, "nothing is written twice")
			}
		})
	}
}

func identity(m *Machine, slot int) run.Disk {
	d := m.disks[slot-1]
	return run.Disk{Serial: d.spec.Serial, WWN: d.spec.WWN, Model: d.spec.Model, Size: uint64(d.spec.Size)}
}

func signatures(inv api.Inventory) []string {
	var all []string
	for _, d := range inv.Disks {
		for _, p := range d.Parts {
			for _, s := range p.Signatures {
				all = append(all, s.Type)
			}
		}
	}
	return all
}
