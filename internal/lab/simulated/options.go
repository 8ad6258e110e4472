package simulated

import (
	"context"
	"net"
	"time"

	"github.com/ironlot/ironlot/internal/lab/state"
)

// Options describe a machine.
type Options struct {
	Name      string // for the log
	Address   string // a loopback address of its own, such as 127.0.10.1
	SSHPort   int    // 0 means 2222: 22 needs root
	TalosPort int    // 0 means 50000
	Dir       string // where the machine keeps its disks and its RAM
	Disks     []DiskSpec
	RAM       uint64 // bytes; 0 means 16 GiB
	Machine   string // what uname -m says; empty means x86_64
	Delivered Delivered
	Delays    Delays
	// SwapNames lets the kernel find the disks in another order on some boots.
	SwapNames bool
	Seed      uint64
	// NoPassword lets sudo ask for none.
	NoPassword bool
	Faults     Faults
	// Talos runs the Talos system of a machine that has booted from its disk.
	// Without it such a machine has no network service at all.
	Talos Talos
	// Hold is called where the machine is about to do something, and may
	// block: "rescue" (SSH is open in rescue), "inspect", "job", "job ended",
	// "disk write", "stage", "reset asked" and "reset" of the agent's host. May
	// be nil.
	Hold func(point string)
	// Log gets each line of the machine's console; may be nil.
	Log func(line string)
}

// DiskSpec describes a disk.
type DiskSpec struct {
	Serial string
	WWN    string
	Model  string
	Size   int64 // bytes, a multiple of 4096
}

// Delays are how long a machine takes. A real one takes minutes.
type Delays struct {
	POST   time.Duration // power on to the firmware's choice
	Rescue time.Duration // firmware to SSH in rescue
	Normal time.Duration // firmware to the system on the disk
}

// Delivered is what lies on the disks when the provider hands the server over.
type Delivered string

// What the provider can deliver.
const (
	Blank Delivered = "blank" // disks of zeros: the firmware boots nothing
	RAID1 Delivered = "raid1" // software RAID 1 over all disks, as delivered
	LVM   Delivered = "lvm"   // the same with LVM on the root array
)

// Deliveries lists what the provider can deliver.
func Deliveries() []Delivered { return []Delivered{RAID1, LVM, Blank} }

// Faults are what goes wrong. The zero value is a good machine. They may be
// changed at any time with Machine.SetFaults.
type Faults struct {
	IgnoreReboots   int   // so many reboots are accepted and ignored
	RescueNeverUp   bool  // rescue is netbooted and never answers
	OldSystem       bool  // the system on the disk boots although rescue was asked for
	DropSSHAfter    int64 // cut the SSH connection after so many bytes, once
	ResetAfterWrite int64 // the machine resets itself after so many bytes of data, zeros not counted, written in one boot, once
	WriteErrorAt    int64 // writes that touch this byte of a disk fail …
	WriteErrorDisk  int   // … of the disk in this slot, counted from 1; 0: none
	BytesPerSecond  int64 // disk speed; 0: as fast as it goes
	LyingDiscard    bool  // zeroing succeeds and changes nothing
	RAM             uint64
	// BusyWrites lets a disk in use be opened for writing, as tools do that
	// do not ask for exclusive use. The kernel panics at a random write.
	BusyWrites bool
}

// Talos runs a Talos node until the context ends. It returns when its
// network service is closed.
type Talos func(ctx context.Context, boot TalosBoot) error

// TalosBoot is what a Talos system finds when it boots.
type TalosBoot struct {
	Machine string
	Address string // of the API, host:port
	Store   *state.Store
	// TwoEphemerals: two disks carry an EPHEMERAL partition. The kubelet
	// crashes on such a machine.
	TwoEphemerals bool
	Wire          func(net.Conn) net.Conn // puts a connection on the machine's cable
	Log           func(line string)
}

func (o Options) withDefaults() Options {
	if o.SSHPort == 0 {
		o.SSHPort = 2222
	}
	if o.TalosPort == 0 {
		o.TalosPort = 50000
	}
	if o.RAM == 0 {
		o.RAM = 16 << 30
	}
	if o.Machine == "" {
		o.Machine = "x86_64"
	}
	if o.Delivered == "" {
		o.Delivered = Blank
	}
	return o
}
