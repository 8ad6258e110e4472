package crash

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/tests/rig"
)

// held is a rig of some servers, the first of which is held in a phase.
func held(t *testing.T, servers int, p run.Phase, point string) (*rig.Rig, *rig.Holds, []run.NodeInput) {
	t.Helper()
	needed(t)
	holds, base := rig.NewHolds(), common.bases.Next()
	r := rig.New(t, common.bin, common.main.Address(), holds, lab.Options{Base: base, Lot: "hands" + lotName(base), Servers: servers, Hold: holds.Hold})
	inputs := r.Inputs(func(n *run.Node) {
		n.Timeouts = run.Timeouts{RescueBoot: 8 * time.Second, Unreachable: 3 * time.Second}
	})
	holds.Set(1, inputs[0].Node.ID(), p, point)
	r.Worker()
	return r, holds, inputs
}

func startLot(t *testing.T, r *rig.Rig, name string, nodes []run.NodeInput) (client.WorkflowRun, error) {
	t.Helper()
	return r.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: run.LotID(name), TaskQueue: run.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, run.WorkflowLot, run.LotInput{Lot: name, Nodes: nodes})
}

// TestTwoLotsNeverShareAServer: a lot that is started twice is refused; a
// second lot that names a server of the first is refused that server, gets the
// other one, and the first lot does not notice.
func TestTwoLotsNeverShareAServer(t *testing.T) {
	t.Parallel()
	r, holds, inputs := held(t, 2, run.Write, "disk write")
	first, err := startLot(t, r, "first", inputs[:1])
	require.NoError(t, err)
	must(t, holds.Wait(within(t)), r)

	_, err = startLot(t, r, "first", inputs)
	started := new(serviceerror.WorkflowExecutionAlreadyStarted)
	require.ErrorAs(t, err, &started)

	second, err := startLot(t, r, "second", inputs)
	require.NoError(t, err)
	var status run.LotStatus
	require.NoError(t, second.Get(within(t), &status))
	require.Equal(t, run.Refused, status.Nodes[0].State)
	require.Contains(t, status.Nodes[0].Reason, inputs[0].Node.ID())
	require.Equal(t, run.Ready, status.Nodes[1].State)

	holds.Open()
	require.NoError(t, first.Get(within(t), &status))
	require.Equal(t, run.Ready, status.Nodes[0].State)
	for _, s := range r.Fleet.Servers() {
		require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, s.Counters().Reboots)
		require.Len(t, writing(s.Machine), 1)
	}
}

// TestPersonReboots: somebody reboots the server at the provider's console in
// the middle of a phase. The run notices that its boot is gone, goes back, and
// ends Ready; what it had told the old boot happens on no other one.
func TestPersonReboots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase   run.Phase
		point   string
		into    provider.BootType
		reboots map[string]int // the person's included
		lost    bool           // the run has to go back
	}{
		"while rescue is waited for": {run.WaitSSH, "inspect", provider.BootNormal, map[string]int{"rescue": 2, "normal": 2}, true},
		"while disks are cleared":    {run.DiskPrep, "disk write", provider.BootRescue, map[string]int{"rescue": 2, "normal": 1}, true},
		"while the image is staged":  {run.Stage, "stage", provider.BootNormal, map[string]int{"rescue": 2, "normal": 2}, true},
		"while the disk is written":  {run.Write, "disk write", provider.BootRescue, map[string]int{"rescue": 2, "normal": 1}, true},
		"while Ready is waited for":  {run.WaitReady, rig.Ready, provider.BootNormal, map[string]int{"rescue": 1, "normal": 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, holds, inputs := held(t, 1, c.phase, c.point)
			in := inputs[0]
			r.Start(in)
			must(t, holds.Wait(within(t)), r)
			person, server := r.Person(), r.Fleet.Servers()[0]
			keys, err := person.SSHKeyIDs(t.Context(), []string{r.PublicKey()})
			require.NoError(t, err)
			boots := len(server.Machine.Boots())
			require.NoError(t, person.Reboot(t.Context(), in.Node.Zone, in.Node.ServerID, c.into, keys))
			if c.point == rig.Ready {
				holds.Open() // Talos, which is held, must end first
			}
			r.Eventually("the machine has rebooted", func() bool { return len(server.Machine.Boots()) > boots })
			holds.Open()

			status := r.Settled(in.Node.ID())
			require.Equal(t, run.Ready, status.State, "%+v\nworkers' log:\n%s", status.Problem, r.LogTail())
			require.Equal(t, c.lost, status.Rewinds > 0, "%+v", status.Timeline)
			require.Equal(t, c.reboots, server.Counters().Reboots)
			lost := 0
			for _, p := range status.Timeline {
				if p.Class == string(fault.RescueLost) {
					lost++
					require.NotEmpty(t, p.Error, "the history shows why it went back")
				}
			}
			require.Equal(t, status.Rewinds, lost)
			for _, b := range server.Machine.Boots() {
				for _, d := range b.Disks {
					require.Zero(t, d.Refused, "two writers on boot %s", b.ID)
				}
			}
			wrote := writing(server.Machine)
			require.Equal(t, status.Facts.Reset.BootID, wrote[len(wrote)-1].ID, "the image was written on the boot that the run knows")
		})
	}
}

// TestFrozenWorkerOfATerminatedRun: a worker freezes in the middle of a run,
// which is terminated; the next run takes the machine. The thawed worker's
// late commands reach nothing.
func TestFrozenWorkerOfATerminatedRun(t *testing.T) {
	t.Parallel()
	needed(t)
	holds, base := rig.NewHolds(), common.bases.Next()
	r := rig.New(t, common.bin, common.main.Address(), holds, lab.Options{Base: base, Lot: "thawed" + lotName(base), Servers: 1, Hold: holds.Hold})
	in := r.Inputs(nil)[0]
	holds.Set(1, in.Node.ID(), run.Write, "disk write")
	old := r.Worker()
	first := r.Start(in)
	must(t, holds.Wait(within(t)), r)
	old.Freeze()
	require.NoError(t, r.Client.TerminateWorkflow(t.Context(), first.GetID(), first.GetRunID(), "test"))
	r.Worker()
	r.Start(r.Inputs(nil)[0])
	r.Eventually("the next run is in wait-ssh, where it takes the machine", func() bool {
		return r.Proxy.Now(in.Node.ID()).Activity == string(run.WaitSSH)
	})
	old.Thaw()
	holds.Open() // the old write can be stopped only when the disk lets it go on
	status := r.Settled(in.Node.ID())
	require.Equal(t, run.Ready, status.State, "%+v\nworkers' log:\n%s", status.Problem, r.LogTail())
	require.True(t, status.Facts.Rescue.Reused)
	server := r.Fleet.Servers()[0]
	require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, server.Counters().Reboots)
	for _, b := range server.Machine.Boots() {
		for _, d := range b.Disks {
			require.Zero(t, d.Refused, "two writers")
		}
	}
}
