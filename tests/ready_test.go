package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

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

// TestKubernetesHasASay: Talos says Ready, and Kubernetes is asked as well. A
// run waits while it does not agree or does not answer, says so, and goes on
// when it agrees.
func TestKubernetesHasASay(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, Kubernetes: true})
	s.startWorker()
	inputs := s.inputs(func(n *run.Node) {
		n.Ready.Labels = map[string]string{"ironlot.dev/lab": "simulated"}
		if !n.ControlPlane {
			n.Ready.ProviderID = "lab://${ironlot.server.id}"
			n.Timeouts.Ready = 10 * time.Second
		}
	})
	agrees, lacks := s.startNode(inputs[0]), s.startNode(inputs[1])
	status := s.result(agrees)
	require.Equal(t, run.Ready, status.State, "%+v", status.Problem)
	require.Empty(t, status.Facts.Ready.Notes)

	stuck := s.waitFor(lacks.GetID(), run.Stuck, run.WaitReady)
	require.Contains(t, stuck.Problem.Message, "was not Ready within 10s: kubernetes: the node has no provider ID")

	api, node := s.fleet.Kubernetes(), inputs[1].Node
	api.Break(true)
	s.update(lacks.GetID(), run.UpdateRetry, run.RetryRequest{})
	s.eventually("the silent API makes the run stuck again", waitLong, func() bool {
		stuck = s.status(lacks.GetID())
		return stuck.State == run.Stuck && strings.Contains(stuck.Problem.Message, "answers with status 503")
	})

	api.Break(false)
	api.Edit(node.Name, func(n *corev1.Node) { n.Spec.ProviderID = "lab://" + node.ServerID })
	s.update(lacks.GetID(), run.UpdateRetry, run.RetryRequest{})
	status = s.result(lacks)
	require.Equal(t, run.Ready, status.State, "%+v", status.Problem)
}
