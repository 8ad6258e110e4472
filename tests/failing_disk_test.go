package tests

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/run"
)

// TestAFailingSystemDiskIsLeftForAnother: what the remedies say, done as they
// say it, ends in a node that is Ready on the other disk. The failing one is
// not touched again. Whoever forgets to keep it is told so, before anything is
// erased but what was to be erased anyway.
func TestAFailingSystemDiskIsLeftForAnother(t *testing.T) {
	t.Parallel()
	for name, forgets := range map[string]bool{"as the remedy says": false, "without keep at first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, lab.Options{Servers: 1, Faults: faults(t, "write-error")})
			s.startWorker()
			r := s.startNode(s.inputs(nil)[0])
			stuck := s.waitFor(r.GetID(), run.Stuck, run.Write)
			require.Contains(t, stuck.Problem.Remedy, "set `secondaryDisks: keep` for this node")
			require.Contains(t, stuck.Problem.Remedy, "`starter retry "+stuck.Node.Lot+" "+stuck.Node.Name+" --batch LOT.YAML --another-disk`")
			failing, other := stuck.Facts.System.Serial, stuck.Facts.Secondary[0].Serial

			corrected := func(secondary run.Secondary) *run.NodeInput {
				return &s.inputs(func(n *run.Node) {
					n.Disks = run.DiskPolicy{System: run.DiskChoice{Serial: other}, Secondary: secondary}
				})[0]
			}
			request := run.RetryRequest{Input: corrected(run.Keep), AnotherDisk: true}
			if forgets {
				s.update(r.GetID(), run.UpdateRetry, run.RetryRequest{Input: corrected(run.Blank), AnotherDisk: true})
				stuck = s.waitFor(r.GetID(), run.Stuck, run.DiskPrep)
				require.Contains(t, stuck.Problem.Message, failing)
				require.Contains(t, stuck.Problem.Remedy, "set `secondaryDisks: keep` for this node")
				require.Contains(t, stuck.Problem.Remedy, "`starter retry "+stuck.Node.Lot+" "+stuck.Node.Name+" --batch LOT.YAML`;")
				request.AnotherDisk = false
			}
			machine := s.fleet.Servers()[0].Machine
			before := touches(machine)
			s.update(r.GetID(), run.UpdateRetry, request)
			status := s.result(r)
			require.Equal(t, run.Ready, status.State, "%+v", status.Problem)
			require.Equal(t, other, status.Facts.System.Serial)
			require.Equal(t, before, touches(machine), "the failing disk")
		})
	}
}

// touches is how often the first disk of a machine was written to, in all boots.
func touches(m *simulated.Machine) (sum simulated.DiskCount) {
	for _, b := range m.Boots() {
		c := b.Disks[0]
		sum.BytesWritten += c.BytesWritten
		sum.BytesZeroed += c.BytesZeroed
		sum.HeadWrites += c.HeadWrites
		sum.Opens += c.Opens
	}
	return sum
}
