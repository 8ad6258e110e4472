package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

// TestNodeWithoutACNI: it is stuck and told why, unless the lot says that such
// a node counts as done.
func TestNodeWithoutACNI(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, Faults: faults(t, "no-cni")})
	s.startWorker()
	inputs := s.inputs(func(n *run.Node) {
		if n.ControlPlane {
			n.Ready = run.ReadyRule{Hold: time.Second, Accept: []run.Shortfall{run.NoCNI}}
		} else {
			n.Timeouts.Ready = 10 * time.Second
		}
	})
	accepts, refuses := s.startNode(inputs[0]), s.startNode(inputs[1])
	status := s.result(accepts)
	require.Equal(t, run.Ready, status.State, "%+v", status.Problem)
	require.Equal(t, []run.Shortfall{run.NoCNI}, status.Facts.Ready.Missing)
	require.Contains(t, status.Timeline[len(status.Timeline)-1].Summary, "is done as the lot accepts it (no-cni)")

	stuck := s.waitFor(refuses.GetID(), run.Stuck, run.WaitReady)
	require.Contains(t, stuck.Problem.Message, "is not Ready: no CNI has put its config into /etc/cni/net.d")
	s.abort(refuses.GetID())
}
