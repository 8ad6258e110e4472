// Package simulated is a machine of the lab inside this process. Its disks
// are files, its rescue system is an SSH server that runs the agent's own
// code over them, and its firmware boots what really lies on the disks. The
// hardware, the kernels and Talos itself are simulated; what runs here proves
// nothing about a real machine.
package simulated

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/ironlot/ironlot/internal/lab/hardware"
)

var _ hardware.Machine = (*Machine)(nil)

// State is what a machine is doing.
type State string

// The states of a machine.
const (
	Off      State = "off"
	POST     State = "post"
	NoBoot   State = "no-boot" // the firmware boots nothing and waits for a person
	Booting  State = "booting"
	InRescue State = "rescue"
	InOS     State = "os"    // the system that the provider delivered
	InTalos  State = "talos" // Talos from the written disk
	Hung     State = "hung"  // a kernel panic, or a system that never comes up
)

// Machine is a simulated machine. It is safe for concurrent use.
type Machine struct {
	opts  Options
	disks []*disk
	net   *network
	osKey []byte // seed of the delivered system's host key

	power sync.Mutex // held while the machine changes boots

	mu      sync.Mutex
	changed chan struct{} // closed at the next change of state
	state   State
	faults  Faults
	bootAs  hardware.BootType
	rescue  hardware.Rescue
	boot    *boot // nil while it is off
	history []*boot
	console []string
	random  *rand.Rand
	closed  bool
	running sync.WaitGroup
}

// New makes a machine that is off, with what the provider delivers on its
// disks.
func New(o Options) (*Machine, error) {
	o = o.withDefaults()
	if len(o.Disks) == 0 {
		return nil, errors.New("a machine needs at least one disk")
	}
	m := &Machine{
		opts:    o,
		net:     newNetwork(),
		changed: make(chan struct{}),
		state:   Off,
		faults:  o.Faults,
		random:  rand.New(rand.NewPCG(o.Seed, 1)),
		osKey:   newKeySeed(),
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	for i, spec := range o.Disks {
		d, err := newDisk(filepath.Join(o.Dir, fmt.Sprintf("disk%d.raw", i+1)), i+1, spec)
		if err != nil {
			m.closeDisks()
			return nil, err
		}
		m.disks = append(m.disks, d)
	}
	if err := deliver(m.disks, o.Delivered); err != nil {
		m.closeDisks()
		return nil, fmt.Errorf("cannot put the delivered system on the disks of %s: %w", o.Name, err)
	}
	return m, nil
}

// Address is the machine's IP address.
func (m *Machine) Address() string { return m.opts.Address }

// PowerOn boots; a running machine is reset abruptly.
func (m *Machine) PowerOn(bootAs hardware.BootType, rescue hardware.Rescue) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return fmt.Errorf("machine %s is closed", m.opts.Name)
	}
	if m.faults.IgnoreReboots > 0 {
		m.faults.IgnoreReboots--
		m.mu.Unlock()
		m.logf("reboot accepted and ignored")
		return nil
	}
	m.bootAs, m.rescue = bootAs, rescue
	m.mu.Unlock()
	m.restart(nil)
	return nil
}

// PowerOff stops the machine abruptly.
func (m *Machine) PowerOff() error {
	m.stop(nil, Off)
	return nil
}

// Reset is a reset out of the blue: the machine boots again as it was told
// last.
func (m *Machine) Reset() { m.restart(nil) }

// Panic is a kernel panic: the machine hangs until it is reset.
func (m *Machine) Panic() { m.panic(nil) }

func (m *Machine) panic(only *boot) {
	if m.stop(only, Hung) {
		m.logf("kernel panic - not syncing")
	}
}

// SetNetwork takes the machine's network away or gives it back. Connections
// stay and are silent.
func (m *Machine) SetNetwork(up bool) { m.net.set(up) }

// CutConnections breaks every connection to the machine, once.
func (m *Machine) CutConnections() { m.net.cut() }

// hold lets a test stop the machine at a point.
func (m *Machine) hold(point string) {
	if m.opts.Hold != nil {
		m.opts.Hold(point)
	}
}

// SetFaults changes what goes wrong from now on.
func (m *Machine) SetFaults(f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
}

func (m *Machine) currentFaults() Faults {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults
}

// Close powers off and removes the machine's files.
func (m *Machine) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	_ = m.PowerOff() // it always can
	m.net.set(true)
	m.running.Wait()
	m.closeDisks()
	return os.RemoveAll(m.opts.Dir)
}

func (m *Machine) closeDisks() {
	for _, d := range m.disks {
		d.f.Close()
	}
}

// restart ends the current boot and starts the next. With a boot given it
// does so only while that boot lives: a machine does not reset twice.
func (m *Machine) restart(only *boot) {
	m.power.Lock()
	defer m.power.Unlock()
	if m.stale(only) || m.isClosed() {
		return
	}
	m.endBoot()
	m.beginBoot()
}

// stop ends the current boot and reports whether it did.
func (m *Machine) stop(only *boot, state State) bool {
	m.power.Lock()
	defer m.power.Unlock()
	if m.stale(only) {
		return false
	}
	m.endBoot()
	m.setState(state)
	return true
}

func (m *Machine) stale(only *boot) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return only != nil && m.boot != only
}

func (m *Machine) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// endBoot takes the power away from the current boot: when it returns, no
// write of that boot reaches a disk any more and its ports are free.
func (m *Machine) endBoot() {
	m.mu.Lock()
	b := m.boot
	m.boot = nil
	m.mu.Unlock()
	if b == nil {
		return
	}
	b.kill()
	<-b.done
	os.RemoveAll(b.dir)
}

func (m *Machine) beginBoot() {
	m.mu.Lock()
	b := newBoot(m, m.bootAs, m.rescue, len(m.history)+1)
	m.boot = b
	m.history = append(m.history, b)
	m.mu.Unlock()
	m.setState(POST)
	m.running.Go(func() {
		defer close(b.done)
		b.run()
	})
}

// State is what the machine is doing now.
func (m *Machine) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// WaitState waits until the machine is in a state.
func (m *Machine) WaitState(ctx context.Context, want State) error {
	for {
		m.mu.Lock()
		state, changed := m.state, m.changed
		m.mu.Unlock()
		if state == want {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("machine %s is in state %s, not %s, its console says %q: %w",
				m.opts.Name, state, want, m.lastWords(), ctx.Err())
		}
	}
}

func (m *Machine) setState(s State) {
	m.mu.Lock()
	m.state = s
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
}
