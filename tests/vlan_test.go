package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/talos"
)

// TestVLANAuto: two nodes share a config, and each joins by the number of its
// own server's private network.
func TestVLANAuto(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, PrivateNetwork: true})
	s.startWorker()
	inputs := s.inputs(nil)
	for i, r := range []string{s.startNode(inputs[0]).GetID(), s.startNode(inputs[1]).GetID()} {
		status := s.waitFor(r, run.Ready, "")
		want := uint32(1001 + i)
		require.Equal(t, want, status.Facts.Preflight.VLAN)
		require.Equal(t, []uint32{want}, status.Facts.Preflight.VLANs)
	}
}

// TestVLANOfAnotherServer: a foreign number is refused while nothing is
// touched.
func TestVLANOfAnotherServer(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, PrivateNetwork: true})
	s.startWorker()
	in := s.inputs(nil)[1]
	s.patch(&in, strings.ReplaceAll(foreignVLAN, "NUMBER", "1001"))
	r := s.startNode(in)
	status := s.waitFor(r.GetID(), run.Stuck, run.Preflight)
	require.Contains(t, status.Problem.Message, "has 2 VLANs ([1001 1002]), with which nodes have been seen not to join")
	require.Empty(t, s.fleet.Servers()[1].Counters().Reboots)
	s.abort(r.GetID())
}

// TestWorkerWithoutItsVLANNeverJoins: its config is good and names no VLAN, so
// that it reaches no control plane. Its API stays closed, which is told.
func TestWorkerWithoutItsVLANNeverJoins(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, PrivateNetwork: true})
	s.startWorker()
	in := s.inputs(func(n *run.Node) { n.Timeouts.Ready = 10 * time.Second })[1]
	s.patch(&in, "apiVersion: v1alpha1\nkind: VLANConfig\nname: eno1.1002\n$patch: delete\n")
	r := s.startNode(in)
	status := s.waitFor(r.GetID(), run.Stuck, run.WaitReady)
	require.Empty(t, status.Facts.Preflight.VLANs)
	require.Contains(t, status.Problem.Message, "a worker opens it only when it has reached trustd of a control plane (port 50001): look at its VLAN")
	s.abort(r.GetID())
}

const foreignVLAN = "apiVersion: v1alpha1\nkind: VLANConfig\nname: eno1.NUMBER\nvlanID: NUMBER\nparent: eno1\n"

// patch adds a patch of its own to a node's sealed input.
func (s *stack) patch(in *run.NodeInput, text string) {
	s.t.Helper()
	own := talos.Bundle{Patches: []talos.Named{{Name: "own.yaml", Data: []byte(text)}}}
	data, err := own.Encode()
	require.NoError(s.t, err)
	in.Sealed.Own, err = seal.Seal(data, s.identity.Recipient())
	require.NoError(s.t, err)
}
