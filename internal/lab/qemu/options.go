package qemu

import "github.com/ironlot/ironlot/internal/lab/talosnode"

// Options describe a machine.
type Options struct {
	Name      string // for the log
	Address   string // a loopback address of its own, such as 127.0.10.1
	SSHPort   int    // 0 means 2222: 22 needs root
	TalosPort int    // 0 means 50000
	Dir       string // where the machine keeps its disks
	Disks     []DiskSpec
	Memory    int       // MiB; 0 means 1024
	Delivered Delivered // empty means RAID1
	// SwapNames lets the kernel find the disks in the other order at every
	// second boot.
	SwapNames bool
	Talos     TalosSettings
	Faults    Faults
	Log       func(line string) // console, a line at a time; may be nil
}

// DiskSpec describes a disk.
type DiskSpec struct {
	Serial string
	WWN    string // 0x and 16 digits; not for NVMe
	Model  string // up to 16 characters
	Size   int64  // bytes, a multiple of 1 MiB
	NVMe   bool   // instead of SCSI
}

// Delivered is what lies on the disks when the provider hands the server
// over.
type Delivered string

// What the provider can deliver. Everything but Blank boots.
const (
	Blank Delivered = "blank" // zeros: the firmware boots nothing
	RAID1 Delivered = "raid1" // /boot, swap and / on arrays of their own over all disks
	LVM   Delivered = "lvm"   // the same with LVM on the array of /
	Many  Delivered = "many"  // six arrays, metadata 1.0 and 1.2
)

// Deliveries lists what the provider can deliver.
func Deliveries() []Delivered { return []Delivered{RAID1, LVM, Many, Blank} }

// Faults are what goes wrong from the next boot on. The zero value is a good
// machine. Each is injected.
type Faults struct {
	IgnoreReboots  int    // so many reboots are accepted and ignored
	RescueNeverUp  bool   // rescue is netbooted and stops before it has a network
	OldSystem      bool   // the system on the disk boots although rescue was asked for
	HideTools      string // names of tools that rescue does not have, apart by blanks
	HideArrays     bool   // rescue does not assemble arrays, for want of mdadm
	SHMSize        string // size of /dev/shm in rescue, as mount(8) takes it
	WriteErrorDisk int    // writes to the disk in this slot, counted from 1, fail …
	WriteErrorAt   int64  // … at this byte
	ReadOnlyDisk   int    // the disk in this slot, counted from 1, refuses every write
}

// TalosSettings are given to the node that boots from a written disk.
type TalosSettings struct {
	// Address is the machine's, as its clients see it. The machine sets it.
	Address string `json:"address"`
	// ControlPlane is the config of a control plane that the node can reach:
	// in this lab it stands for the cluster.
	ControlPlane []byte           `json:"controlPlane,omitempty"`
	VLANs        []uint32         `json:"vlans"`   // of the server
	CheckVLANs   bool             `json:"check"`   // compare the config's with them
	Delays       talosnode.Delays `json:"delays"`  // zero: every step at once
	Faults       talosnode.Faults `json:"faults"`  // of the node
	Version      string           `json:"version"` // of Talos; empty: the usual
}

func (o Options) withDefaults() Options {
	if o.SSHPort == 0 {
		o.SSHPort = 2222
	}
	if o.TalosPort == 0 {
		o.TalosPort = 50000
	}
	if o.Memory == 0 {
		o.Memory = 1024
	}
	if o.Delivered == "" {
		o.Delivered = RAID1
	}
	return o
}
