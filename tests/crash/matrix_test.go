package crash

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/tests/rig"
)

// during is where each phase is held in the middle of its effect.
func during() map[run.Phase]string {
	return map[run.Phase]string{
		run.Preflight:    "ListServerPrivateNetworks before",
		run.RebootRescue: "RebootServer after", // done, and the worker does not know it
		run.WaitSSH:      "inspect",
		run.DiskPrep:     "disk write",
		run.Stage:        "stage",
		run.Write:        "disk write",
		run.SysrqReset:   "reset asked", // the agent has not answered yet
		run.BootNormal:   "RebootServer after",
		run.ApplyConfig:  "keep config", // the node has it, and has not left maintenance
		run.WaitReady:    rig.Ready,
	}
}

// everywhere holds each phase at the same point.
func everywhere(point string) map[run.Phase]string {
	points := map[run.Phase]string{}
	for _, p := range run.Phases() {
		points[p] = point
	}
	return points
}

// intents are the phases that record what they are about to ask for.
func intents() map[run.Phase]string {
	return map[run.Phase]string{run.RebootRescue: rig.Intent, run.BootNormal: rig.Intent}
}

// crash is one fault, struck when a run is held in every phase at once.
type crash struct {
	r      *rig.Rig
	holds  *rig.Holds
	worker *rig.Worker
	server *devserver.Server // this row's own Temporal; nil: the shared one
	runs   []run.NodeInput
}

// row is one fault of the matrix at one point of each phase.
type row struct {
	name   string
	points map[run.Phase]string
	own    bool // kills Temporal, so it has one of its own
	strike func(t *testing.T, c *crash)
}

func rows() []row {
	return []row{
		{"worker killed before", everywhere(rig.Before), false, killWorker},
		{"worker killed during", during(), false, killWorker},
		{"worker killed after", everywhere(rig.After), false, killWorker},
		{"worker killed with an intent", intents(), false, killWorker},
		{"temporal killed before", everywhere(rig.Before), true, killTemporal},
		{"temporal killed during", during(), true, killTemporal},
		{"temporal killed after", everywhere(rig.After), true, killTemporal},
		{"connections cut during", during(), false, cutConnections},
		{"network gone during", during(), false, takeNetwork},
		{"worker frozen during", during(), false, freezeWorker},
		{"worker frozen after", everywhere(rig.After), false, freezeWorker},
		{"worker frozen with an intent", intents(), false, freezeWorker},
	}
}

var record = flag.Bool("record", false, "write histories of runs in the middle of each phase to workflows/testdata/histories") //nolint:gochecknoglobals // a flag

// recorded is the row whose runs are recorded.
const recorded = "worker killed during"

// keep writes the histories of runs that are held in the middle of each phase:
// the replay tests take new code over them.
func (c *crash) keep(t *testing.T) {
	t.Helper()
	for _, in := range c.runs {
		phase := c.r.Proxy.Now(in.Node.ID()).Activity
		file := filepath.Join("workflows", "testdata", "histories", "in-"+phase+".json")
		require.NoError(t, os.WriteFile(file, c.r.History(in.Node.ID()), 0o644))
	}
}

// TestMatrix strikes every fault in every phase. One server a phase: each is
// held at the row's point of its phase, and the fault hits all of them.
func TestMatrix(t *testing.T) {
	needed(t)
	undisturbed := control(t)
	for _, one := range rows() {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			c := one.start(t)
			if *record && one.name == recorded {
				c.keep(t)
			}
			one.strike(t, c)
			c.prove(t, undisturbed)
		})
	}
}

// start brings a run to the row's point of each of its phases.
func (one row) start(t *testing.T) *crash {
	t.Helper()
	c := &crash{holds: rig.NewHolds()}
	temporal := common.main.Address()
	if one.own {
		var err error
		c.server, err = rig.Temporal(common.bin.Temporal, common.dir, t.Name()[len("TestMatrix/"):])
		require.NoError(t, err)
		t.Cleanup(func() { c.server.Kill() })
		temporal = c.server.Address()
	}
	base := common.bases.Next()
	c.r = rig.New(t, common.bin, temporal, c.holds, lab.Options{
		Base: base, Lot: "crash" + lotName(base), Servers: len(one.points), Hold: c.holds.Hold,
	})
	c.worker = c.r.Worker()
	for _, group := range order() {
		for _, p := range group {
			point, ok := one.points[p]
			if !ok {
				continue
			}
			in := c.r.Inputs(nil)[len(c.runs)]
			c.runs = append(c.runs, in)
			c.holds.Set(len(c.runs), in.Node.ID(), p, point)
			c.r.Start(in)
		}
		must(t, c.holds.Wait(within(t)), c.r)
	}
	return c
}

// order is the one in which runs are brought to their phases: those that
// cannot be held for long in the middle of a request come last.
func order() [][]run.Phase {
	return [][]run.Phase{
		{run.WaitReady, run.SysrqReset, run.Write, run.Stage, run.DiskPrep, run.WaitSSH},
		{run.ApplyConfig, run.BootNormal},
		{run.RebootRescue, run.Preflight},
	}
}

func lotName(base string) string {
	name := []byte(base)
	for i, b := range name {
		if b == '.' {
			name[i] = '-'
		}
	}
	return "-" + string(name)
}

func killWorker(_ *testing.T, c *crash) {
	c.worker.Kill()
	c.holds.Open()
	c.worker = c.r.Worker()
}

func killTemporal(t *testing.T, c *crash) {
	o := c.server.Options()
	c.server.Kill()
	server, err := devserver.Start(within(t), o)
	require.NoError(t, err)
	c.server = server
	c.holds.Open()
}

func cutConnections(_ *testing.T, c *crash) {
	for _, s := range c.r.Fleet.Servers() {
		s.Machine.CutConnections()
	}
	c.holds.Open()
}

// takeNetwork takes the network between worker and machines away for two minutes
// while the machines go on with what they were told: far longer than a worker
// keeps a silent connection.
func takeNetwork(_ *testing.T, c *crash) {
	set := func(up bool) {
		for _, s := range c.r.Fleet.Servers() {
			s.Machine.SetNetwork(up)
		}
	}
	set(false)
	c.holds.Open()
	time.Sleep(2 * time.Minute) // the fault itself
	set(true)
}

// freezeWorker freezes the worker until another one has taken over each run,
// thaws it in the middle of that, and only then lets the phases go on.
func freezeWorker(_ *testing.T, c *crash) {
	held := map[string]rig.Task{}
	for _, in := range c.runs {
		held[in.Node.ID()] = c.r.Proxy.Now(in.Node.ID())
	}
	c.worker.Freeze()
	c.r.Worker()
	for _, in := range c.runs {
		c.r.Eventually("another worker has taken over "+in.Node.Name, func() bool {
			return c.r.Proxy.Now(in.Node.ID()) != held[in.Node.ID()]
		})
	}
	c.worker.Thaw()
	c.holds.Open()
}

// control is what an undisturbed run does to its machine's disks.
func control(t *testing.T) []simulated.DiskCount {
	t.Helper()
	holds := rig.NewHolds()
	base := common.bases.Next()
	r := rig.New(t, common.bin, common.main.Address(), holds, lab.Options{Base: base, Lot: "control" + lotName(base), Servers: 1})
	r.Worker()
	in := r.Inputs(nil)[0]
	r.Start(in)
	require.Equal(t, run.Ready, r.Settled(in.Node.ID()).State, "workers' log:\n%s", r.LogTail())
	written := writing(r.Fleet.Servers()[0].Machine)
	require.Len(t, written, 1)
	return written[0].Disks
}

// writing lists the boots on which the agent opened a disk to write.
func writing(m *simulated.Machine) []simulated.Boot {
	var found []simulated.Boot
	for _, b := range m.Boots() {
		for _, d := range b.Disks {
			if d.Opens+d.Refused > 0 {
				found = append(found, b)
				break
			}
		}
	}
	return found
}

// prove waits for Ready and counts what was done to provider and disks: no
// more and no less than by an undisturbed run.
func (c *crash) prove(t *testing.T, undisturbed []simulated.DiskCount) {
	t.Helper()
	for i, s := range c.r.Fleet.Servers() {
		status := c.r.Settled(c.runs[i].Node.ID())
		require.Equal(t, run.Ready, status.State, "%s: %+v\nworkers' log:\n%s", s.Node, status.Problem, c.r.LogTail())
		require.Zero(t, status.Rewinds, "%s: %+v", s.Node, status.Timeline)
		require.Equal(t, map[string]int{"rescue": 1, "normal": 1}, s.Counters().Reboots, "%s: one reboot for each one needed", s.Node)
		boots := writing(s.Machine)
		require.Len(t, boots, 1, "%s: the disks were written on one boot alone", s.Node)
		require.Equal(t, status.Facts.Reset.BootID, boots[0].ID, "%s: and it was the run's", s.Node)
		require.Equal(t, undisturbed, boots[0].Disks, "%s: as many writes as by an undisturbed run", s.Node)
	}
}
