package tests

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/run"
)

// TestCorrectedDigestGoesOnInTheSameRescueBoot: stuck with a wrong digest, a
// signal corrects it; the run pays no second reboot and erases nothing twice.
func TestCorrectedDigestGoesOnInTheSameRescueBoot(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	r := s.startNode(s.inputs(func(n *run.Node) { n.Image.RawSHA256 = wrongDigest })[0])
	s.waitFor(r.GetID(), run.Stuck, run.Stage)
	require.NoError(t, s.client.SignalWorkflow(t.Context(), r.GetID(), "", run.UpdateRetry, run.RetryRequest{From: "nonsense"}))
	s.eventually("the signal is refused", waitLong, func() bool { return s.status(r.GetID()).Notice != "" })
	require.Equal(t, run.Stuck, s.status(r.GetID()).State)

	in := s.inputs(nil)[0]
	require.NoError(t, s.client.SignalWorkflow(t.Context(), r.GetID(), "", run.UpdateRetry, run.RetryRequest{Input: &in}))
	status := s.result(r)
	require.Equal(t, run.Ready, status.State)
	require.Zero(t, status.Rewinds)
	require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, s.fleet.Servers()[0].Counters().Reboots)
	count := map[run.Phase]int{}
	for _, p := range status.Timeline {
		count[p.Phase]++
	}
	require.Equal(t, 2, count[run.Preflight])
	require.Equal(t, 1, count[run.DiskPrep])
	require.Equal(t, 2, count[run.Stage])
}

// TestTerminatedRunsJobIsStoppedByTheNextRun: a run is terminated while its
// machine is written. The next run takes the machine over, stops the write
// first, and at no time do two write.
func TestTerminatedRunsJobIsStoppedByTheNextRun(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	machine := s.fleet.Servers()[0].Machine
	machine.SetFaults(simulated.Faults{BytesPerSecond: 1e6})
	first := s.startNode(s.inputs(nil)[0])
	s.eventually("the disk is being written", waitLong, func() bool {
		boots := machine.Boots()
		return s.status(first.GetID()).Phase == run.Write && boots[len(boots)-1].Disks[0].BytesWritten > 1e6
	})
	require.NoError(t, s.client.TerminateWorkflow(t.Context(), first.GetID(), first.GetRunID(), "test"))

	second := s.startNode(s.inputs(nil)[0])
	s.eventually("the second run has the machine", waitLong, func() bool { return run.WaitSSH.Before(s.status(second.GetID()).Phase) })
	machine.SetFaults(simulated.Faults{})
	status := s.result(second)
	require.Equal(t, run.Ready, status.State)
	require.True(t, status.Facts.Rescue.Reused, "no reboot was needed")
	require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, s.fleet.Servers()[0].Counters().Reboots)
	for _, b := range machine.Boots() {
		for _, d := range b.Disks {
			require.Zero(t, d.Refused, "two writers")
		}
	}
}

// TestRebootsThatAreIgnoredAreEscalated: the provider's reboots do nothing;
// stop and start brings the server into rescue. When nothing helps the run is
// stuck, and says what was tried.
func TestRebootsThatAreIgnoredAreEscalated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ignored int
		state   run.State
	}{"power cycle helps": {2, run.Ready}, "nothing helps": {100, run.Stuck}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, lab.Options{Servers: 1})
			s.startWorker()
			server := s.fleet.Servers()[0]
			server.Machine.SetFaults(simulated.Faults{IgnoreReboots: c.ignored})
			r := s.startNode(s.inputs(func(n *run.Node) { n.Timeouts.RescueBoot = 4e9 })[0])
			status := s.waitFor(r.GetID(), c.state, "")
			counters := server.Counters()
			require.Equal(t, 2, counters.Reboots["rescue"])
			require.Equal(t, 1, counters.Stops)
			require.Equal(t, 1, counters.Starts)
			if c.state == run.Ready {
				require.Equal(t, 2, status.Rewinds)
				return
			}
			require.Equal(t, run.WaitSSH, status.Phase)
			require.Contains(t, status.Problem.Message, "gave up after 2 reboots and 1 power cycle")
			require.Contains(t, status.Problem.Erased, "nothing")
			server.Machine.SetFaults(simulated.Faults{})
			s.update(r.GetID(), run.UpdateRetry, run.RetryRequest{From: run.RebootRescue})
			require.Equal(t, run.Ready, s.result(r).State)
		})
	}
}
