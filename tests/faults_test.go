package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

func faults(t *testing.T, names ...string) []lab.Fault {
	t.Helper()
	var all []lab.Fault
	for _, name := range names {
		f, err := lab.ParseFault(name)
		require.NoError(t, err)
		all = append(all, f)
	}
	return all
}

// TestFaultsThatPass: with these faults the node becomes Ready all the same.
func TestFaultsThatPass(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"ssh-drop", "lying-discard", "apply-lost", "image-reset", "image-no-ranges",
		"api-rate-limit", "api-error", "api-reset", "api-lost-answer", "reboot-ignored",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, lab.Options{Servers: 1, Faults: faults(t, name)})
			s.startWorker()
			status := s.result(s.startNode(s.inputs(func(n *run.Node) { n.Timeouts.RescueBoot = 10 * time.Second })[0]))
			require.Equal(t, run.Ready, status.State, "%+v", status.Problem)
			if name == "reboot-ignored" {
				return // it goes back to ask again
			}
			require.Zero(t, status.Rewinds)
			require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, s.fleet.Servers()[0].Counters().Reboots, "no reboot too many")
			if name != "lying-discard" { // zeros are written there
				oneWriter(t, s.fleet.Servers()[0].Machine, status.Facts.Written)
			}
		})
	}
}

// TestFaultsThatNeedAPerson: with these the run is stuck, in the right phase
// and with the true reason, and nothing later has happened.
func TestFaultsThatNeedAPerson(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		phase  run.Phase
		reason string
	}{
		"same-serial":     {run.WaitSSH, "cannot be told apart"},
		"short-ram":       {run.Stage, "RAM"},
		"image-truncated": {run.Stage, ""},
		"image-html":      {run.Preflight, "no disk image"},
		"write-error":     {run.Write, ""},
		"stale-state":     {run.DiskPrep, "STATE"},
		"foreign-config":  {run.ApplyConfig, "ALARM: the node at"},
		"never-joins":     {run.WaitReady, ""},
		"kubelet-crash":   {run.WaitReady, "kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, lab.Options{Servers: 1, Faults: faults(t, name)})
			s.startWorker()
			r := s.startNode(s.inputs(func(n *run.Node) {
				n.Timeouts = run.Timeouts{RescueBoot: 20 * time.Second, NormalBoot: 20 * time.Second, Apply: 20 * time.Second, Ready: 20 * time.Second}
				if name == "stale-state" {
					n.Disks.Secondary = run.Keep
				}
			})[0])
			if name == "write-error" {
				s.eventually("somebody who looks sees that the job is tried again", 2*time.Minute, func() bool { return s.try(r.GetID()) > 1 })
			}
			stuck := s.waitFor(r.GetID(), run.Stuck, "")
			require.Equal(t, want.phase, stuck.Phase, "%+v", stuck.Problem)
			require.Contains(t, stuck.Problem.Message, want.reason)
			require.NotEmpty(t, stuck.Problem.Remedy)
			if name == "write-error" || name == "same-serial" {
				require.Contains(t, stuck.Problem.Remedy, "`starter retry "+stuck.Node.Lot+" "+stuck.Node.Name+" --")
			}
			if name == "write-error" {
				for n := 1; n < 5; n++ {
					require.Contains(t, stuck.Problem.Tail, fmt.Sprintf("job %d of 5: disk ", n))
				}
				require.Contains(t, stuck.Problem.Tail, " failed disk ", "the log of the last job ends with its error")
			}
			require.NotEmpty(t, stuck.Problem.Erased)
			s.abort(r.GetID())
			require.Equal(t, run.Aborted, s.result(r).State)
		})
	}
}

// try is the how-manyth job of its phase a node's activity tells of.
func (s *stack) try(id string) int {
	d, err := s.client.DescribeWorkflow(s.t.Context(), id, "")
	require.NoError(s.t, err)
	for _, a := range d.RawResponse.GetPendingActivities() {
		var p run.Progress
		if a.GetHeartbeatDetails() != nil && converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &p) == nil {
			return p.Try
		}
	}
	return 0
}
