// Package workflows holds the durable side of Ironlot: ProvisionNode takes
// one server through the phases, ProvisionLot runs the nodes of a lot. It
// knows the activities by name only.
package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// phase is a row of the table: how a phase's activity runs, and where the
// run goes back to when the phase finds its ground gone. The activity has
// the phase's name.
type phase struct {
	name        run.Phase
	queue       string    // task queue of the activity
	rewind      run.Phase // on RescueLost; empty: the run is stuck
	needsConfig bool      // gets the sealed config
	remoteJob   bool      // leaves a job on the machine when it is cut off
	destroys    bool      // may change what is on the disks
	boots       bool      // waits for a boot, which is asked for again when it does not come
	does        string    // for the activity's summary in the Web UI
	bound       func(run.Timeouts) time.Duration
}

// table returns the phases in order. It is a function so that nobody can
// change it.
func table() []phase {
	return []phase{
		{name: run.Preflight, queue: run.ProviderTaskQueue, needsConfig: true, bound: fixed(5 * time.Minute),
			does: "check everything, touch nothing"},
		{name: run.RebootRescue, queue: run.ProviderTaskQueue, rewind: run.RebootRescue, bound: fixed(15 * time.Minute),
			does: "ask the provider once for a reboot into rescue"},
		{name: run.WaitSSH, queue: run.TaskQueue, rewind: run.RebootRescue, boots: true, bound: run.Timeouts.RescueBootOr,
			does: "wait for SSH of a new rescue boot"},
		{name: run.DiskPrep, queue: run.TaskQueue, rewind: run.WaitSSH, remoteJob: true, destroys: true, bound: run.Timeouts.DiskPrepOr,
			does: "release and clear the handed-over disks"},
		{name: run.Stage, queue: run.TaskQueue, rewind: run.WaitSSH, remoteJob: true, bound: run.Timeouts.StageOr,
			does: "load the image into the machine's RAM"},
		{name: run.Write, queue: run.TaskQueue, rewind: run.Stage, remoteJob: true, destroys: true, bound: run.Timeouts.WriteOr,
			does: "write the image and read it back"},
		{name: run.SysrqReset, queue: run.TaskQueue, rewind: run.BootNormal, bound: fixed(10 * time.Minute),
			does: "sync and reset the rescue boot"},
		{name: run.BootNormal, queue: run.ProviderTaskQueue, rewind: run.BootNormal, boots: true, bound: run.Timeouts.NormalBootOr,
			does: "boot the written disk, wait for the Talos API"},
		{name: run.ApplyConfig, queue: run.TaskQueue, rewind: run.BootNormal, needsConfig: true, bound: run.Timeouts.ApplyOr,
			does: "hand the machine config to Talos"},
		{name: run.WaitReady, queue: run.TaskQueue, needsConfig: true, bound: run.Timeouts.ReadyOr,
			does: "wait until the node is Ready"},
	}
}

func fixed(d time.Duration) func(run.Timeouts) time.Duration {
	return func(run.Timeouts) time.Duration { return d }
}

const (
	// The last resort for a phase with all its attempts. It is long because
	// it also runs while no worker is up, which is no fault of the machine.
	phaseLimit = 7 * 24 * time.Hour
	// Attempts at 30 s apart at most: a quarter of an hour without network
	// between worker and machine is survived.
	maxAttempts = 40
)

// takesConfig reports whether the phase's activity gets the sealed config.
func (p phase) takesConfig(node run.Node) bool {
	return p.needsConfig || p.name == run.Write && node.Delivery == run.ByState
}

// options are the activity options of a phase for one node.
func (p phase) options(in run.NodeInput) workflow.ActivityOptions {
	node := in.Node
	return workflow.ActivityOptions{
		TaskQueue:              p.queue,
		StartToCloseTimeout:    p.bound(node.Timeouts) + run.AttemptGrace,
		ScheduleToCloseTimeout: phaseLimit,
		HeartbeatTimeout:       run.HeartbeatTimeoutOf(in.Together),
		WaitForCancellation:    true,
		Summary:                clip.End(node.Name+": "+p.does, maxSummary),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        time.Second,
			BackoffCoefficient:     2,
			MaximumInterval:        30 * time.Second,
			MaximumAttempts:        maxAttempts,
			NonRetryableErrorTypes: []string{string(fault.RescueLost), string(fault.NeedsOperator), string(fault.Aborted)},
		},
	}
}

// position is the index of a phase in the table, or -1.
func position(phases []phase, name run.Phase) int {
	for i, p := range phases {
		if p.name == name {
			return i
		}
	}
	return -1
}
