package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
)

// zone is where the lab's servers are.
const zone = "fr-par-2"

// addServer makes a machine and registers it with the provider.
func (f *Fleet) addServer(ctx context.Context, n int) error {
	name := fmt.Sprintf("lab-%d", n)
	s := Server{Number: n, Node: f.nodeName(n)}
	var err error
	if f.opts.Kit != nil {
		s.Guest, err = f.newGuest(ctx, name, n)
	} else {
		s.Machine, err = f.newSimulated(name, n)
	}
	if err != nil {
		return err
	}
	s.Server, err = f.api.AddServer(scwapi.ServerSpec{
		Name: name, Zone: zone, Machine: s.Metal(), Addresses: []string{s.Metal().Address()}, Networks: f.networks(n),
	})
	if err != nil {
		return errors.Join(err, s.Metal().Close())
	}
	f.servers = append(f.servers, s)
	return nil
}

// newSimulated makes a simulated machine that runs its delivered system.
func (f *Fleet) newSimulated(name string, n int) (*simulated.Machine, error) {
	options := simulated.Options{
		Name:      name,
		Address:   f.address(n).String(),
		SSHPort:   f.opts.SSHPort,
		TalosPort: f.opts.TalosPort,
		Dir:       filepath.Join(f.dir, "machines", name),
		Disks:     f.disks(n),
		Delivered: f.opts.Delivered,
		Delays: simulated.Delays{
			POST: f.scaled(n, realPOST), Rescue: f.scaled(n, realRescue), Normal: f.scaled(n, realNormal),
		},
		SwapNames: f.opts.SwapNames,
		Seed:      f.opts.Seed + uint64(n),
		Log:       f.opts.Log,
		Hold:      f.holdOf(n),
	}
	talosFaults := talosnode.Faults{}
	for _, one := range f.faultsOf(n) {
		if one.kind.machine != nil {
			one.kind.machine(&options)
		}
		if one.kind.talos != nil {
			one.kind.talos(&talosFaults)
		}
	}
	options.Talos = f.talos(n, talosFaults, options.Hold)
	faults := options.Faults
	options.Faults = simulated.Faults{} // none while the provider delivers
	m, err := simulated.New(options)
	if err != nil {
		return nil, err
	}
	if err := m.PowerOn(hardware.BootNormal, hardware.Rescue{}); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.SetFaults(faults)
	return m, nil
}

// nodeName: the first node is a control plane, the others are workers.
func (f *Fleet) nodeName(n int) string {
	switch {
	case f.opts.Workers:
		return fmt.Sprintf("%s-worker-%d", f.opts.Lot, n)
	case n == 1:
		return f.opts.Lot + "-cp-1"
	default:
		return fmt.Sprintf("%s-worker-%d", f.opts.Lot, n-1)
	}
}

// disks are two of unequal size, with serials that tell the server and slot.
func (f *Fleet) disks(n int) []simulated.DiskSpec {
	disk := func(slot string, size int64) simulated.DiskSpec {
		return simulated.DiskSpec{
			Serial: fmt.Sprintf("LAB%04d%s", n, slot), Model: "IRONLOT SIMULATED", Size: size,
			WWN: fmt.Sprintf("0x5000000000%04x0%s", n, slot),
		}
	}
	return []simulated.DiskSpec{disk("A", f.opts.DiskSize), disk("B", 2*f.opts.DiskSize)}
}

// firstVLAN is the number of the first server's private network.
const firstVLAN = 1001

// networks are the private networks of a server.
func (f *Fleet) networks(n int) []scwapi.Network {
	if !f.opts.PrivateNetwork {
		return nil
	}
	return []scwapi.Network{{VLAN: uint32(firstVLAN + n - 1)}}
}

// vlans tells a node the VLANs of its server, nil where nobody compares.
func (f *Fleet) vlans(n int) func() []uint32 {
	if !f.opts.PrivateNetwork {
		return nil
	}
	return func() []uint32 { return []uint32{uint32(firstVLAN + n - 1)} }
}

// Slowness is how much longer than a usual machine of the fleet server n takes
// for everything.
func (f *Fleet) Slowness(n int) float64 {
	if f.opts.Spread == 0 {
		return 1
	}
	random := rand.New(rand.NewPCG(f.opts.Seed, uint64(n)))
	return 1 + f.opts.Spread*(2*random.Float64()-1)
}

// OwnTime is how long server n takes from a reboot into rescue to a Ready node
// when nobody makes it wait and the jobs in between take no time.
func (f *Fleet) OwnTime(n int) time.Duration { return f.scaled(n, RealTime()) }

// RealTime is the OwnTime of a real machine, as far as its parts are known.
func RealTime() time.Duration {
	return realPOST + realRescue + realPOST + realNormal + talosnode.RealDelays().Sum()
}

// factor turns a real machine's times into those of server n.
func (f *Fleet) factor(n int) float64 { return f.Slowness(n) / f.opts.Speed }

func (f *Fleet) scaled(n int, real time.Duration) time.Duration {
	return time.Duration(float64(real) * f.factor(n))
}

// talos runs a node of the lab on a machine that has booted from its disk.
func (f *Fleet) talos(n int, faults talosnode.Faults, hold func(point string)) simulated.Talos {
	return func(ctx context.Context, boot simulated.TalosBoot) error {
		faults := faults
		faults.KubeletCrash = faults.KubeletCrash || boot.TwoEphemerals
		node, err := talosnode.Start(ctx, talosnode.Options{
			Addr:   boot.Address,
			Store:  boot.Store,
			Serial: boot.Machine,
			UUID:   systemUUID(boot.Machine),
			Delays: talosnode.RealDelays().Scale(f.factor(n)),
			Faults: faults,
			Trustd: f.trustd,
			VLANs:  f.vlans(n),
			Wire:   boot.Wire,

			Kubelet: f.kubelet(),

			Hold: hold,
			Log:  boot.Log,
		})
		if err != nil {
			return err
		}
		<-ctx.Done()
		node.Stop()
		return nil
	}
}

// holdOf is the hold of a machine, nil for none.
func (f *Fleet) holdOf(n int) func(point string) {
	if f.opts.Hold == nil {
		return nil
	}
	return func(point string) { f.opts.Hold(n, point) }
}

// holdAPI is the hold of a request for a server.
func (f *Fleet) holdAPI(id, point string) {
	if f.opts.Hold == nil {
		return
	}
	for _, s := range f.servers {
		if s.ID == id {
			f.opts.Hold(s.Number, point)
		}
	}
}
