package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/simulated"
)

// Options describe a fleet. The zero value of each field but Dir is good.
type Options struct {
	Dir     string // where the fleet keeps its files; it must be empty or a lab's
	Lot     string // name of the lot; empty means lab
	Servers int    // 0 means 3
	// Base is the loopback address of the provider's API and the image
	// server; the machines follow behind it. Empty means 127.0.10.0.
	Base      string
	APIPort   int // 0 means 8080
	ImagePort int // 0 means 8081
	SSHPort   int // 0 means 2222: 22 needs root
	TalosPort int // 0 means 50000
	// Speed is how many times faster than real machines the lab's go. 0
	// means 60.
	Speed float64
	// Spread is how much machines differ: with 0.2 each takes 0.8 to 1.2 times
	// as long as its Speed says, by the Seed. 0 means not at all.
	Spread    float64
	Image     images.Spec         // the zero value means 64 MiB, 16 of them data
	Format    images.Format       // empty means zst
	DiskSize  int64               // of the system disk, bytes; the second one has twice that. 0 means 1 GiB
	Delivered simulated.Delivered // empty means raid1
	SwapNames bool                // kernel names of disks swap between boots
	Seed      uint64
	Faults    []Fault
	Log       func(line string) // consoles of the machines; may be nil
	// Hold is called where a simulated server, or the API on its behalf, is
	// about to do something, and may block: tests break things there. See
	// the Hold of scwapi, simulated and talosnode for the points. May be nil.
	Hold func(server int, point string)
	// Kit makes the machines QEMU guests with a real kernel, which boot in
	// their own time. Without it they are simulated.
	Kit  *qemu.Kit
	NVMe bool // the guests' disks are NVMe instead of SCSI
	// Bootstrap leaves it to the lot to start the cluster, on the first server.
	// Without it the cluster is there already, beside the servers.
	Bootstrap bool
	// Workers makes the first server a worker too, so that no node waits for
	// another one.
	Workers bool
	// PrivateNetwork attaches each server to a private network, with a VLAN
	// number of its own, and gives the lot `vlan: auto`. A simulated node whose
	// config has another VLAN, or none, never joins.
	PrivateNetwork bool
	// Kubernetes starts an API server that the nodes register with, at
	// Base:6443, and gives the lot a kubeconfig. Simulated machines alone.
	Kubernetes bool
}

func (o Options) withDefaults() Options {
	set := func(port *int, value int) {
		if *port == 0 {
			*port = value
		}
	}
	set(&o.APIPort, 8080)
	set(&o.ImagePort, 8081)
	set(&o.SSHPort, 2222)
	set(&o.TalosPort, 50000)
	set(&o.Servers, 3)
	if o.Lot == "" {
		o.Lot = "lab"
	}
	if o.Base == "" {
		o.Base = "127.0.10.0"
	}
	if o.Speed == 0 {
		o.Speed = 60
	}
	if o.Image.Size == 0 && o.Kit != nil {
		o.Image.Size, o.Image.Data = 128*layout.MiB, 16*layout.MiB
	}
	if o.Image.Size == 0 {
		o.Image.Size, o.Image.Data = 64*layout.MiB, 16*layout.MiB
	}
	if o.Format == "" {
		o.Format = images.Zstd
	}
	if o.DiskSize == 0 {
		o.DiskSize = max(1024*layout.MiB, 2*o.Image.Size)
	}
	if o.Delivered == "" {
		o.Delivered = simulated.RAID1
	}
	return o
}

// check refuses what cannot be.
func (o Options) check() (netip.Addr, error) {
	base, err := netip.ParseAddr(o.Base)
	switch {
	case o.Dir == "":
		return base, fault.Operator("name one", "the lab needs a directory")
	case err != nil || !base.Is4() || !base.IsLoopback():
		return base, fault.Operator("use one such as 127.0.10.0", "the lab's base address %q is not an IPv4 loopback address", o.Base)
	case o.Servers < 1 || o.Servers > 1000:
		return base, fault.Operator("change the number", "a lab has 1 to 1000 servers, not %d", o.Servers)
	case o.Speed < 0:
		return base, fault.Operator("use 1 for the speed of real machines, 60 for sixty times that", "the lab's speed %v is negative", o.Speed)
	case o.Spread < 0 || o.Spread >= 1:
		return base, fault.Operator("use 0.2 for a fifth", "the lab's spread %v is not from 0 to 1", o.Spread)
	case o.Workers && o.Bootstrap:
		return base, fault.Operator("use one of the two", "a lab of workers alone has no node to bootstrap its cluster")
	case o.DiskSize < o.Image.Size:
		return base, fault.Operator("make the disk larger", "a disk of %d bytes is too small for an image of %d bytes", o.DiskSize, o.Image.Size)
	case o.Kit != nil && (o.Bootstrap || o.PrivateNetwork || o.Kubernetes):
		return base, fault.Operator("use simulated machines", "the nodes on QEMU machines have their cluster from the start, without a private network or a Kubernetes API of the lab")
	case !slices.Contains(images.Formats(), o.Format):
		return base, fault.Operator(fmt.Sprintf("use one of %v", images.Formats()), "there is no image format %q", o.Format)
	case !slices.Contains(o.deliveries(), o.Delivered):
		return base, fault.Operator(fmt.Sprintf("use one of %v", o.deliveries()), "the lab cannot deliver %q on its disks", o.Delivered)
	}
	if err := o.Image.Check(); err != nil {
		return base, err
	}
	for _, f := range o.Faults {
		if err := f.check(o.Servers, o.Kit != nil); err != nil {
			return base, err
		}
	}
	return base, nil
}
