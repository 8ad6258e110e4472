package lab

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
)

// Fault is something that goes wrong in the lab.
type Fault struct {
	Name   string
	Server int // 0 means every server
	kind   faultKind
}

// faultKind says what a fault changes. Only some of the fields are set.
type faultKind struct {
	help    string
	machine func(*simulated.Options)
	guest   func(*qemu.Options) // the same on a QEMU machine
	talos   func(*talosnode.Faults)
	stale   bool // an old STATE on the second disk
	images  *images.Faults
	api     *scwapi.Fault
}

// faultKinds are the faults by name.
func faultKinds() map[string]faultKind {
	machine := func(help string, set func(*simulated.Options)) faultKind {
		return faultKind{help: help, machine: set}
	}
	both := func(help string, set func(*simulated.Options), guest func(*qemu.Options)) faultKind {
		return faultKind{help: help, machine: set, guest: guest}
	}
	talos := func(help string, set func(*talosnode.Faults)) faultKind { return faultKind{help: help, talos: set} }
	image := func(help string, f images.Faults) faultKind { return faultKind{help: help, images: &f} }
	api := func(help string, f scwapi.Fault) faultKind { return faultKind{help: help, api: &f} }
	return map[string]faultKind{
		"reboot-ignored":  both("the first reboot is accepted and ignored", func(o *simulated.Options) { o.Faults.IgnoreReboots = 1 }, func(o *qemu.Options) { o.Faults.IgnoreReboots = 1 }),
		"rescue-never-up": both("rescue never answers", func(o *simulated.Options) { o.Faults.RescueNeverUp = true }, func(o *qemu.Options) { o.Faults.RescueNeverUp = true }),
		"old-system":      both("the delivered system boots instead of rescue", func(o *simulated.Options) { o.Faults.OldSystem = true }, func(o *qemu.Options) { o.Faults.OldSystem = true }),
		"no-signature":    both("the disks have no boot signature: the firmware boots nothing", func(o *simulated.Options) { o.Delivered = simulated.Blank }, func(o *qemu.Options) { o.Delivered = qemu.Blank }),
		"ssh-drop":        machine("the SSH connection breaks once, after 1 MB", func(o *simulated.Options) { o.Faults.DropSSHAfter = 1e6 }),
		"reset-mid-write": machine("the machine resets itself once, after 8 MiB of the image", func(o *simulated.Options) { o.Faults.ResetAfterWrite = 8 * layout.MiB }),
		"write-error": both("the system disk fails at byte 5242880 (5 MiB)", func(o *simulated.Options) { o.Faults.WriteErrorDisk, o.Faults.WriteErrorAt = 1, 5*layout.MiB },
			func(o *qemu.Options) { o.Faults.WriteErrorDisk, o.Faults.WriteErrorAt = 1, 5*layout.MiB }),
		"slow-disk":        machine("disks write 5 MB/s", func(o *simulated.Options) { o.Faults.BytesPerSecond = 5e6 }),
		"lying-discard":    machine("discarded blocks keep their content", func(o *simulated.Options) { o.Faults.LyingDiscard = true }),
		"short-ram":        both("the machine has 72 MiB of RAM, 64 of which stay free: an image with less data fits", func(o *simulated.Options) { o.Faults.RAM = 72 * layout.MiB }, func(o *qemu.Options) { o.Faults.SHMSize = "72m" }),
		"same-serial":      machine("both disks have one serial, size and no WWN: they cannot be told apart", sameSerial),
		"never-joins":      talos("the node never reaches its cluster, as with a wrong VLAN", func(f *talosnode.Faults) { f.NeverJoins = true }),
		"kubelet-crash":    talos("the kubelet crashes again and again", func(f *talosnode.Faults) { f.KubeletCrash = true }),
		"apply-lost":       talos("the answer to apply-config is lost", func(f *talosnode.Faults) { f.AnswerLost = true }),
		"bootstrap-lost":   talos("the answer to the bootstrap is lost", func(f *talosnode.Faults) { f.BootstrapLost = true }),
		"no-cni":           talos("nobody installs a CNI: the node stays NotReady", func(f *talosnode.Faults) { f.NoCNI = true }),
		"state-read-only":  talos("STATE cannot be formatted", func(f *talosnode.Faults) { f.StateReadOnly = true }),
		"foreign-config":   talos("somebody else's config reaches the node first", func(f *talosnode.Faults) { f.Foreign = true }),
		"stale-state":      {help: "the second disk carries STATE of an old Talos", stale: true},
		"image-truncated":  image("the image ends after 1 MiB", images.Faults{Truncate: layout.MiB}),
		"image-reset":      image("the download breaks twice, after 3 MiB", images.Faults{ResetAfter: 3 * layout.MiB, Resets: 2}),
		"image-html":       image("the image server answers with an HTML page", images.Faults{HTML: true}),
		"image-slow":       image("the image server sends 1 MB/s", images.Faults{BytesPerSecond: 1e6}),
		"image-no-ranges":  image("the image server ignores ranges and breaks once", images.Faults{NoRanges: true, ResetAfter: 3 * layout.MiB, Resets: 1}),
		"api-rate-limit":   api("every fourth API call is answered 429", scwapi.Fault{Kind: scwapi.RateLimit, Rate: 0.25}),
		"api-error":        api("every fourth API call is answered 500", scwapi.Fault{Kind: scwapi.ServerError, Rate: 0.25}),
		"api-reset":        api("every fourth API connection is reset", scwapi.Fault{Kind: scwapi.Reset, Rate: 0.25}),
		"api-lost-answer":  api("the answer to the first reboot is lost", scwapi.Fault{Kind: scwapi.LostAnswer, Operation: "RebootServer", Times: 1}),
		"api-stuck-status": api("the status after the first reboot never settles", scwapi.Fault{Kind: scwapi.StuckStopping, Operation: "RebootServer", Times: 1}),
	}
}

func sameSerial(o *simulated.Options) {
	for i := range o.Disks {
		o.Disks[i].Serial, o.Disks[i].WWN, o.Disks[i].Size = "LABSAME", "", o.Disks[0].Size
	}
}

// ParseFault reads NAME or NAME@SERVER, the server by number.
func ParseFault(s string) (Fault, error) {
	name, number, given := strings.Cut(s, "@")
	f := Fault{Name: name}
	if given {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return f, fault.Operator("write it as "+name+"@1", "the fault %q does not end in the number of a server", s)
		}
		f.Server = n
	}
	return f, f.resolve()
}

// resolve finds what a fault does by its name.
func (f *Fault) resolve() error {
	kind, ok := faultKinds()[f.Name]
	if !ok {
		return fault.Operator("choose from "+strings.Join(FaultNames(), ", "), "there is no fault %q", f.Name)
	}
	if f.Server != 0 && kind.images != nil {
		return fault.Operator(fmt.Sprintf("leave out @%d", f.Server), "the fault %q strikes all servers", f.Name)
	}
	f.kind = kind
	return nil
}

func (f Fault) check(servers int, guests bool) error {
	if err := f.resolve(); err != nil {
		return err
	}
	if guests && f.kind.machine != nil && f.kind.guest == nil {
		return fault.Operator("use it with simulated machines", "QEMU machines do not have the fault %s", f.Name)
	}
	if f.Server < 0 || f.Server > servers {
		return fault.Operator(fmt.Sprintf("use a number from 1 to %d", servers), "the fault %s@%d is for a server that is not there", f.Name, f.Server)
	}
	return nil
}

// FaultNames lists the faults.
func FaultNames() []string { return slices.Sorted(maps.Keys(faultKinds())) }

// FaultHelp says what each fault does, by name.
func FaultHelp() map[string]string {
	help := map[string]string{}
	for name, kind := range faultKinds() {
		help[name] = kind.help
	}
	return help
}

// faultsOf gives the faults that strike a server.
func (f *Fleet) faultsOf(n int) []Fault {
	var all []Fault
	for _, one := range f.opts.Faults {
		if one.Server != 0 && one.Server != n || one.resolve() != nil {
			continue
		}
		all = append(all, one)
	}
	return all
}

// applyFaults sets what is not a machine's own.
func (f *Fleet) applyFaults() error {
	for _, one := range f.opts.Faults {
		if err := one.resolve(); err != nil {
			return err
		}
		if one.kind.images != nil {
			f.images.SetFaults(*one.kind.images)
		}
	}
	for _, s := range f.servers {
		for _, one := range f.faultsOf(s.Number) {
			if err := f.applyTo(s, one.kind); err != nil {
				return fmt.Errorf("cannot set the fault %s on server %d: %w", one.Name, s.Number, err)
			}
		}
	}
	return nil
}

func (f *Fleet) applyTo(s Server, kind faultKind) error {
	if kind.stale {
		put := s.Machine.PutStaleState
		if s.Guest != nil {
			put = s.Guest.PutStaleState
		}
		if err := put(2, f.cluster.Worker); err != nil {
			return err
		}
	}
	if kind.api != nil {
		one := *kind.api
		one.Server = s.ID
		return f.api.AddFault(one)
	}
	return nil
}
