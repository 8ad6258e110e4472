package qemu

import (
	"fmt"
	"os"
	"time"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// The ports of the systems in a guest.
const (
	guestSSH   = 22
	guestTalos = 50000
)

// PowerOn boots; a running machine is reset abruptly.
func (m *Machine) PowerOn(bootAs hardware.BootType, rescue hardware.Rescue) error {
	ignored := false
	m.set(func() {
		if ignored = m.faults.IgnoreReboots > 0; ignored {
			m.faults.IgnoreReboots--
			return
		}
		m.bootAs, m.rescue = bootAs, rescue
	})
	if ignored {
		m.logf("reboot accepted and ignored")
		return nil
	}
	return m.restart(nil)
}

// Reset is a reset out of the blue: the machine boots again as it was told
// last.
func (m *Machine) Reset() error { return m.restart(nil) }

// PowerOff stops the machine abruptly.
func (m *Machine) PowerOff() error {
	m.power.Lock()
	defer m.power.Unlock()
	m.endBoot()
	m.set(func() { m.state = Off })
	return nil
}

// Close powers off and removes the machine's files.
func (m *Machine) Close() error {
	m.set(func() { m.closed = true })
	if err := m.PowerOff(); err != nil {
		return err
	}
	m.running.Wait()
	return os.RemoveAll(m.opts.Dir)
}

// restart ends the current boot and starts the next. With a guest given it
// does so only while that one is the current: a machine does not reset twice.
func (m *Machine) restart(only *guest) error {
	m.power.Lock()
	defer m.power.Unlock()
	m.mu.Lock()
	stale, closed := only != nil && m.current != only, m.closed
	m.mu.Unlock()
	if closed {
		return fmt.Errorf("machine %s is closed", m.opts.Name)
	}
	if stale {
		return nil
	}
	m.endBoot()
	return m.beginBoot()
}

// endBoot takes the power away: when it returns, the guest writes nothing
// any more and its ports are free.
func (m *Machine) endBoot() {
	m.mu.Lock()
	g := m.current
	m.mu.Unlock()
	if g != nil {
		g.kill()
	}
	m.set(func() { m.current = nil })
}

func (m *Machine) beginBoot() error {
	m.mu.Lock()
	as, login, faults, number := m.bootAs, m.rescue, m.faults, len(m.boots)+1
	m.mu.Unlock()
	if faults.OldSystem {
		as = hardware.BootNormal
	}
	key, err := newHostKey()
	if as == hardware.BootNormal {
		key, login = m.osKey, m.installed
	}
	if err != nil {
		return err
	}
	slot, ok, reason := chooseBoot(m.disks, as)
	m.set(func() {
		m.boots = append(m.boots, Boot{Number: number, Type: as, HostKey: key.fingerprint, Started: time.Now()})
	})
	m.print(number, "firmware: "+reason)
	if !ok {
		m.set(func() { m.state = NoBoot })
		return nil
	}
	files, err := m.writeSettings(login, key, faults)
	if err != nil {
		return err
	}
	g, err := startGuest(m.kit.emulator, m.wiring(as, slot, number, files, faults).args(m.kit.accelerator), func(line string) { m.print(number, line) })
	if err != nil {
		return err
	}
	m.set(func() { m.current, m.state = g, On })
	m.running.Go(func() { m.attend(g, number) })
	return nil
}

// attend waits for the end of a boot. A reset from inside boots again with
// the boot type that was set last.
func (m *Machine) attend(g *guest, number int) {
	<-g.done
	m.set(func() {
		b := &m.boots[number-1]
		b.Ended, b.CPU = string(g.reason), g.cpu()
		for slot := range m.disks {
			if count, ok := g.counts[driveName(slot)]; ok {
				b.Disks = append(b.Disks, count)
			}
		}
	})
	switch g.reason {
	case endKilled:
	case endReset:
		m.logf("reset from inside")
		if err := m.restart(g); err != nil {
			m.print(number, err.Error())
			m.set(func() { m.state = Crashed })
		}
	case endShutdown:
		m.set(func() {
			if m.current == g {
				m.current, m.state = nil, Off
			}
		})
	default:
		m.print(number, g.err.Error())
		m.set(func() { m.state = Crashed })
	}
}

// wiring is the machine as it boots now.
func (m *Machine) wiring(as hardware.BootType, slot, number int, files map[string]string, faults Faults) wiring {
	w := wiring{
		name: m.opts.Name, serial: m.opts.Name, memory: m.opts.Memory, disks: m.disks, boot: slot, files: files, faults: faults,
		forward: []forward{{m.opts.Address, m.opts.SSHPort, guestSSH}},
	}
	// QEMU accepts connections to a forwarded port and resets them while the
	// guest does not listen. That is what a booting Talos does; a Linux that
	// has nothing there refuses, as this computer does without the forwarding.
	if slot >= 0 && m.disks[slot].hasPartition(layout.Meta) {
		w.forward = append(w.forward, forward{m.opts.Address, m.opts.TalosPort, guestTalos})
	}
	for i := range m.disks {
		if m.opts.SwapNames && number%2 == 0 {
			i = len(m.disks) - 1 - i
		}
		w.order = append(w.order, i)
	}
	if as == hardware.BootRescue {
		w.kernel, w.initrd, w.cmdline = m.kit.system.kernel, m.kit.system.initrd, "lab.mode=rescue"
		if faults.RescueNeverUp {
			w.cmdline = "lab.mode=rescue rdinit=/bin/false panic=0"
		}
	}
	return w
}
