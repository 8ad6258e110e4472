//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/run"
)

// What a usual machine takes for the agent's jobs; the rest of its time is
// boots and Talos.
const (
	prepTime  = 3 * time.Second
	stageTime = 12 * time.Second
	writeTime = 15 * time.Second
)

func jobTime() time.Duration { return prepTime + stageTime + writeTime }

const (
	// readyHold is how long the lot wants a node to stay Ready.
	readyHold = run.DefaultHold
	// silence is how long Ironlot wants a boot to be silent before it counts
	// as gone; the machine boots meanwhile, but not what it is to boot.
	silence = 2 * time.Second
)

// machine is what one of the lab's machines did, and when.
type machine struct {
	slowness float64
	own      time.Duration // what it takes when nobody makes it wait

	mu       sync.Mutex
	asked    []time.Time // the provider accepted a reboot
	rescue   []time.Time // SSH is open
	jobs     []span
	reset    []time.Time
	waits    []time.Time // maintenance is served
	taken    []time.Time // the config
	ready    []time.Time
	working  int       // the job whose work has begun
	ran      time.Time // its run began
	finished time.Time // its run ended
}

// span is a job, from its process's start to its end.
type span struct{ began, ended time.Time }

// fleet watches machines. Its hold is the lab's: it notes what happens, and
// lets jobs take their time.
type fleet struct {
	ctx      context.Context //nolint:containedctx // the lab's hold has none
	machines []*machine
}

func (f *fleet) hold(server int, point string) {
	if work := f.machines[server-1].note(point, time.Now()); work > 0 {
		_ = pause.For(f.ctx, work) // a machine that is stopped has done with it
	}
}

// note takes a point of the machine's way, and says how long it works there.
func (m *machine) note(point string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch point {
	case "RebootServer after":
		m.asked = append(m.asked, now)
	case "rescue":
		m.rescue = append(m.rescue, now)
	case "job":
		m.jobs = append(m.jobs, span{began: now})
	case "job ended":
		if n := len(m.jobs); n > 0 {
			m.jobs[n-1].ended = now
		}
	case "disk write", "stage":
		return m.work(point)
	case "reset":
		m.reset = append(m.reset, now)
	case "maintenance":
		m.waits = append(m.waits, now)
	case "config taken":
		m.taken = append(m.taken, now)
	case "ready":
		m.ready = append(m.ready, now)
	}
	return 0
}

// work is what the job at work takes, told once: disk-prep and write at their
// first write, stage when it looks for room.
func (m *machine) work(point string) time.Duration {
	for job, w := range []struct {
		point string
		takes time.Duration
	}{{"disk write", prepTime}, {"stage", stageTime}, {"disk write", writeTime}} {
		if len(m.jobs) == job+1 && m.working == job && point == w.point {
			m.working++
			return time.Duration(float64(w.takes) * m.slowness)
		}
	}
	return 0
}

// straight reports a machine that went its way once; nothing can be said of
// the waits of another.
func (m *machine) straight() bool {
	return len(m.asked) == 2 && len(m.rescue) == 1 && len(m.jobs) == 3 && len(m.reset) == 1 &&
		len(m.waits) == 1 && len(m.taken) == 1 && len(m.ready) == 1 && !m.finished.IsZero()
}

// wait is a time that a machine had nothing to do until Ironlot moved.
type wait struct {
	name string
	of   func(*machine) time.Duration
}

// start is the wait before the first reboot: Temporal and the worker are busy
// with starting the lot, and preflight looks at the server.
func start() wait {
	return wait{"lot's start to the reboot", func(m *machine) time.Duration { return m.asked[0].Sub(m.ran) }}
}

// waits are those of a machine that is under way.
func waits() []wait {
	return []wait{
		{"SSH open to disk-prep", func(m *machine) time.Duration { return m.jobs[0].began.Sub(m.rescue[0]) }},
		{"disk-prep done to stage", func(m *machine) time.Duration { return m.jobs[1].began.Sub(m.jobs[0].ended) }},
		{"stage done to write", func(m *machine) time.Duration { return m.jobs[2].began.Sub(m.jobs[1].ended) }},
		{"write done to reset", func(m *machine) time.Duration { return m.reset[0].Sub(m.jobs[2].ended) }},
		{fmt.Sprintf("reset to boot, without %s", silence), func(m *machine) time.Duration { return m.asked[1].Sub(m.reset[0]) - silence }},
		{"maintenance to config", func(m *machine) time.Duration { return m.taken[0].Sub(m.waits[0]) }},
		{fmt.Sprintf("Ready to the end, without %s", readyHold), func(m *machine) time.Duration { return m.finished.Sub(m.ready[0]) - readyHold }},
	}
}

// idle is all of a machine's waits under way.
func (m *machine) idle() time.Duration {
	var sum time.Duration
	for _, w := range waits() {
		sum += max(0, w.of(m))
	}
	return sum
}

// late is how much longer the machine itself took than it should have: the lab
// shares the cores with everything else.
func (m *machine) late() time.Duration {
	took := m.rescue[0].Sub(m.asked[0]) + m.waits[0].Sub(m.asked[1]) + m.ready[0].Sub(m.taken[0]) + readyHold
	for _, j := range m.jobs {
		took += j.ended.Sub(j.began)
	}
	return took - m.own
}
