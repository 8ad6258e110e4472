package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

var _ hardware.Machine = (*Machine)(nil)

// State is what a machine is doing, as seen from outside.
type State string

// The states of a machine.
const (
	Off     State = "off"
	NoBoot  State = "no-boot" // the firmware boots nothing and waits for a person
	On      State = "on"      // a guest runs
	Crashed State = "crashed" // QEMU itself failed
)

// Machine is a QEMU machine. It is safe for concurrent use.
type Machine struct {
	kit   *Kit
	opts  Options
	disks []disk

	power sync.Mutex // held while the machine changes boots

	mu        sync.Mutex
	changed   chan struct{} // closed at the next change of anything below
	state     State
	bootAs    hardware.BootType
	rescue    hardware.Rescue
	installed hardware.Rescue // who may log in to the delivered system
	osKey     hostKey
	faults    Faults
	talos     TalosSettings
	current   *guest
	boots     []Boot
	closed    bool
	running   sync.WaitGroup
}

// Boot is what is known about one boot of a machine.
type Boot struct {
	Number  int
	Type    hardware.BootType
	HostKey string    // SHA256:… fingerprint, of Linux systems
	Started time.Time // power on
	Ended   string    // empty while it runs
	Console []string
	CPU     time.Duration // that QEMU used, once it has ended
	Disks   []DiskCount   // by slot, once the guest has reset itself or is off
}

// New makes a machine that is off, with what the provider delivers on its
// disks.
func (k *Kit) New(ctx context.Context, o Options) (*Machine, error) {
	o = o.withDefaults()
	if len(o.Disks) == 0 {
		return nil, errors.New("a machine needs at least one disk")
	}
	m := &Machine{kit: k, opts: o, changed: make(chan struct{}), state: Off, faults: o.Faults, talos: o.Talos}
	var err error
	if m.osKey, err = newHostKey(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	for i, spec := range o.Disks {
		if spec.Size <= 0 || spec.Size%layout.MiB != 0 {
			return nil, fmt.Errorf("disk %d of %s has %d bytes, which is no whole number of MiB", i+1, o.Name, spec.Size)
		}
		m.disks = append(m.disks, disk{spec: spec, path: filepath.Join(o.Dir, fmt.Sprintf("disk%d.raw", i+1))})
	}
	if err := k.deliver(ctx, o.Delivered, m.disks); err != nil {
		return nil, fmt.Errorf("cannot put the delivered system on the disks of %s: %w", o.Name, err)
	}
	return m, nil
}

// Address is the machine's IP address.
func (m *Machine) Address() string { return m.opts.Address }

// DiskPath is the file behind the disk in a slot, counted from 1.
func (m *Machine) DiskPath(slot int) string { return m.disks[slot-1].path }

// SetInstalled says who may log in to the delivered system from its next
// boot on.
func (m *Machine) SetInstalled(login hardware.Rescue) { m.set(func() { m.installed = login }) }

// SetFaults changes what goes wrong from the next boot on.
func (m *Machine) SetFaults(f Faults) { m.set(func() { m.faults = f }) }

// SetTalos changes what the node is given from its next boot on.
func (m *Machine) SetTalos(change func(*TalosSettings)) { m.set(func() { change(&m.talos) }) }

func (m *Machine) talosSettings() TalosSettings {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.talos
	s.Address = m.opts.Address
	return s
}

// SlowWrites slows the writes to the disk in a slot, counted from 1, down for
// the rest of this boot: to so many requests and so many bytes a second, 0
// for as fast as it goes.
func (m *Machine) SlowWrites(slot int, requests, bytes int64) error {
	m.mu.Lock()
	g := m.current
	m.mu.Unlock()
	if g == nil {
		return fmt.Errorf("machine %s is off", m.opts.Name)
	}
	return g.monitor.limit(driveName(slot-1), requests, bytes)
}

// set changes something and tells those who wait.
func (m *Machine) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// State is what the machine is doing now.
func (m *Machine) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Boots lists the machine's boots, the current one last.
func (m *Machine) Boots() []Boot {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := append([]Boot(nil), m.boots...)
	for i := range all {
		all[i].Console = append([]string(nil), all[i].Console...)
	}
	return all
}

// Wait waits until a condition on the machine's state and boots holds.
func (m *Machine) Wait(ctx context.Context, what string, holds func(State, []Boot) bool) error {
	for {
		m.mu.Lock()
		state, changed := m.state, m.changed
		m.mu.Unlock()
		if holds(state, m.Boots()) {
			return nil
		}
		if state == Crashed {
			return fmt.Errorf("QEMU of machine %s failed, waited for: %s%s", m.opts.Name, what, m.lastWords())
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("machine %s is %s, waited for: %s: %w%s", m.opts.Name, m.State(), what, ctx.Err(), m.lastWords())
		}
	}
}

// WaitConsole waits for a text on the console of a boot with this number or
// a later one.
func (m *Machine) WaitConsole(ctx context.Context, number int, text string) error {
	return m.Wait(ctx, fmt.Sprintf("%q on the console", text), func(_ State, boots []Boot) bool {
		for _, b := range boots {
			if b.Number < number {
				continue
			}
			for _, line := range b.Console {
				if strings.Contains(line, text) {
					return true
				}
			}
		}
		return false
	})
}

// lastWords is the end of the console, for errors.
func (m *Machine) lastWords() string {
	boots := m.Boots()
	if len(boots) == 0 {
		return ""
	}
	lines := boots[len(boots)-1].Console
	return "\n" + strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// maxConsole bounds what is kept of a boot's console.
const maxConsole = 400

// print keeps a line of a boot's console.
func (m *Machine) print(number int, line string) {
	m.set(func() {
		b := &m.boots[number-1]
		if len(b.Console) >= maxConsole {
			b.Console = b.Console[1:]
		}
		b.Console = append(b.Console[:len(b.Console):len(b.Console)], line)
	})
	m.logf("%s", line)
}

func (m *Machine) logf(format string, args ...any) {
	if m.opts.Log != nil {
		m.opts.Log(fmt.Sprintf("%s %s: %s", time.Now().UTC().Format(time.TimeOnly), m.opts.Name, fmt.Sprintf(format, args...)))
	}
}
