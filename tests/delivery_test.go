package tests

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

func byState(n *run.Node) { n.Delivery = run.ByState }

// openedMaintenance reports whether the machine's Talos ever took configs
// from anybody.
func openedMaintenance(server lab.Server) bool {
	return strings.Contains(strings.Join(server.Machine.Console(), "\n"), "in maintenance")
}

// TestDeliveryByState: a control plane and a worker become Ready without ever
// being in maintenance, and run exactly the lot's configs.
func TestDeliveryByState(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, SwapNames: true})
	s.startWorker()
	inputs := s.inputs(byState)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	require.NoError(t, s.startLot(inputs).Get(ctx, nil), "worker log:\n%s", s.log)
	for i, server := range s.fleet.Servers() {
		status := s.status(inputs[i].Node.ID())
		require.Equal(t, run.Ready, status.State, "%+v", status.Problem)
		facts := status.Facts
		require.NotNil(t, facts.Written.State)
		require.Equal(t, 5, facts.Written.State.Partition)
		require.Equal(t, "configured", facts.Booted.State)
		require.Zero(t, facts.Applied.WindowSeconds)
		require.False(t, facts.Applied.Unproved)
		require.Contains(t, status.Timeline[len(status.Timeline)-2].Summary, "maintenance was never open")
		require.False(t, openedMaintenance(server))
		require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, server.Counters().Reboots)
	}
}

// TestMaintenanceReportsItsWindow: the other delivery says how long the door
// was open.
func TestMaintenanceReportsItsWindow(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	status := s.result(s.startNode(s.inputs(nil)[0]))
	require.Equal(t, run.Ready, status.State)
	require.Nil(t, status.Facts.Written.State)
	require.Equal(t, "maintenance", status.Facts.Booted.State)
	require.Positive(t, status.Facts.Applied.WindowSeconds)
	require.Contains(t, status.Timeline[len(status.Timeline)-2].Summary, "maintenance was open for")
	require.True(t, openedMaintenance(s.fleet.Servers()[0]))
}

// TestDeliveryByStateSurvivesAReset: a machine that resets itself in the
// middle of the write is written again, config and all.
func TestDeliveryByStateSurvivesAReset(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1, Faults: faults(t, "reset-mid-write")})
	s.startWorker()
	status := s.result(s.startNode(s.inputs(byState)[0]))
	require.Equal(t, run.Ready, status.State, "%+v", status.Problem)
	require.NotZero(t, status.Rewinds)
	require.NotNil(t, status.Facts.Written.State)
	require.False(t, openedMaintenance(s.fleet.Servers()[0]))
}
