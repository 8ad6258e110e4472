package scwapi

import (
	"crypto/rand"
	"slices"
	"time"

	"github.com/ironlot/ironlot/internal/lab/hardware"
)

// bootJSON is the body of a reboot or a start.
type bootJSON struct {
	BootType  string   `json:"boot_type"`
	SSHKeyIDs []string `json:"ssh_key_ids"`
}

func (a *API) rebootServer(r *request) (any, *problem) {
	s, boot, p := a.bootable(r, "ready")
	if p != nil {
		return nil, p
	}
	if s.counters.Reboots == nil {
		s.counters.Reboots = map[string]int{}
	}
	s.counters.Reboots[boot.BootType]++
	return a.boot(r, s, boot, "reboot", "stopping"), nil
}

func (a *API) startServer(r *request) (any, *problem) {
	s, boot, p := a.bootable(r, "stopped")
	if p != nil {
		return nil, p
	}
	s.counters.Starts++
	return a.boot(r, s, boot, "start", "starting"), nil
}

func (a *API) stopServer(r *request) (any, *problem) {
	s, p := a.able(r, "ready")
	if p != nil {
		return nil, p
	}
	s.counters.Stops++
	a.begin(s, "stop", "stopping")
	a.finish(r, s, "stopped")
	a.command(s, hardware.Machine.PowerOff)
	return s.view(), nil
}

// able gives the server if it can do the action in its status. The refusal
// of a server that is not delivered is recorded, the others are assumed.
func (a *API) able(r *request, needs string) (*server, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	switch {
	case s.Status == needs && !s.installing():
		return s, nil
	case s.Status == "ordered" || s.Status == "delivering":
		p = notDelivered()
	case s.installing():
		p = passing(s.ID, s.Install.Status)
	case slices.Contains([]string{"stopping", "starting", "deleting", "resetting", "migrating"}, s.Status):
		p = passing(s.ID, s.Status)
	default:
		p = precondition("the server must be " + needs + ", it is " + s.Status)
	}
	s.counters.Refused++
	return nil, p
}

// bootable is able with a boot type and keys that exist.
func (a *API) bootable(r *request, needs string) (*server, bootJSON, *problem) {
	var boot bootJSON
	if p := r.decode(&boot); p != nil {
		return nil, boot, p
	}
	s, p := a.able(r, needs)
	if p != nil {
		return nil, boot, p
	}
	if boot.BootType == "" {
		boot.BootType = "unknown_boot_type" // the API's default value
	}
	if !slices.Contains([]string{"unknown_boot_type", "normal", "rescue"}, boot.BootType) {
		s.counters.Refused++
		return nil, boot, invalid("boot_type", "must be normal or rescue")
	}
	if p := a.checkKeys(boot.SSHKeyIDs); p != nil {
		s.counters.Refused++
		return nil, boot, p
	}
	return s, boot, nil
}

// boot takes the server through a boot: the status passes and the ping stays
// as it is, as recorded, whatever the machine does meanwhile. The unknown
// boot type keeps the one before.
func (a *API) boot(r *request, s *server, boot bootJSON, action, passing string) serverJSON {
	a.begin(s, action, passing)
	if boot.BootType != "unknown_boot_type" {
		s.BootType = boot.BootType
	}
	a.finish(r, s, "ready")
	if a.faults.hit(RebootIgnored, r.operation, s.ID) != nil {
		s.counters.Ignored++
		a.rescue(s, nil)
		return s.view()
	}
	a.powerOn(s, boot.SSHKeyIDs)
	return s.view()
}

// powerOn boots the machine into the server's boot type.
func (a *API) powerOn(s *server, keys []string) {
	boot, rescue := hardware.BootType(s.BootType), a.rescue(s, keys)
	a.command(s, func(m hardware.Machine) error { return m.PowerOn(boot, rescue) })
}

// rescue sets what the server shows of its rescue system, with a password
// for this boot alone, and gives what the machine needs of it.
func (a *API) rescue(s *server, keys []string) hardware.Rescue {
	s.RescueServer = nil
	if s.BootType != string(hardware.BootRescue) {
		return hardware.Rescue{}
	}
	s.RescueServer = &rescueJSON{User: a.rescueUser, Password: newPassword()}
	return hardware.Rescue{
		User:           s.RescueServer.User,
		Password:       s.RescueServer.Password,
		AuthorizedKeys: a.authorizedKeys(s, keys),
	}
}

// begin records an action and sets the status that passes.
func (a *API) begin(s *server, action, passing string) {
	before := s.view()
	now := a.stamp()
	s.before, s.actedAt = &before, time.Time(now)
	s.events = append(s.events, eventJSON{ID: s.ID, Action: action, CreatedAt: now, UpdatedAt: now})
	s.Status, s.UpdatedAt = passing, now
}

// finish makes the status final after a while, or never, by fault.
func (a *API) finish(r *request, s *server, status string) {
	c := a.later(s, a.latency.Settle, func() { s.Status = status })
	c.stuck = a.faults.hit(StuckStopping, r.operation, s.ID) != nil
}

// command gives the machine a command, in the order of the calls and in the
// background. A machine that fails puts its server into the status error.
func (a *API) command(s *server, do func(hardware.Machine) error) {
	if s.machine == nil {
		return
	}
	before, done := s.tail, make(chan struct{})
	s.tail = done
	a.power.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		if err := do(s.machine); err == nil {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		s.counters.Failed++
		s.pending = nil
		s.Status, s.UpdatedAt = "error", a.stamp()
	})
}

// closeMachine ends a machine for good.
func closeMachine(m hardware.Machine) error { return m.Close() }

// installing reports whether the provider installs an operating system now.
func (s *server) installing() bool {
	return s.Install != nil && (s.Install.Status == "to_install" || s.Install.Status == "installing")
}

func (a *API) installServer(r *request) (any, *problem) {
	s, p := a.able(r, "ready")
	if p != nil {
		return nil, p
	}
	var setup setupJSON
	if p := r.decode(&setup); p != nil {
		return nil, p
	}
	if p := a.checkSetup(&setup); p != nil {
		return nil, p
	}
	s.events = append(s.events, eventJSON{ID: s.ID, Action: "install", CreatedAt: a.stamp(), UpdatedAt: a.stamp()})
	a.beginInstall(s, setup, 0)
	return s.view(), nil
}

// checkSetup refuses unknown systems and keys.
func (a *API) checkSetup(setup *setupJSON) *problem {
	if setup == nil {
		return nil
	}
	if _, ok := findByID(systems(""), setup.OsID); !ok {
		return noResource("os", setup.OsID)
	}
	return a.checkKeys(setup.SSHKeyIDs)
}

// beginInstall takes the installation through its states, as recorded. What
// it would do to the disks of a machine is not simulated.
func (a *API) beginInstall(s *server, setup setupJSON, after time.Duration) {
	s.Install = a.install("to_install", setup.OsID, setup.Hostname, setup.SSHKeyIDs)
	after += a.latency.InstallStart
	a.later(s, after, func() {
		s.Install.Status = "installing"
		s.Domain = domain(s.ID, s.Zone)
		for i := range s.IPs {
			s.IPs[i].Reverse, s.IPs[i].ReverseStatus = s.Domain, "pending"
		}
	})
	a.later(s, after+a.latency.Install/200, func() { s.PingStatus = "ping_status_up" })
	done := a.later(s, after+a.latency.Install, func() {
		s.Install.Status = "completed"
		for i := range s.IPs {
			s.IPs[i].ReverseStatus = "active"
		}
	})
	done.quiet = true
}

// newPassword makes a rescue password.
func newPassword() string { return rand.Text() }
