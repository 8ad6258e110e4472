package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
)

// newGuest makes a QEMU machine. It is delivered and off: its first boot is
// the provider's.
func (f *Fleet) newGuest(ctx context.Context, name string, n int) (*qemu.Machine, error) {
	options := qemu.Options{
		Name:      name,
		Address:   f.address(n).String(),
		SSHPort:   f.opts.SSHPort,
		TalosPort: f.opts.TalosPort,
		Dir:       filepath.Join(f.dir, "machines", name),
		Delivered: qemu.Delivered(f.opts.Delivered),
		SwapNames: f.opts.SwapNames,
		Talos: qemu.TalosSettings{
			// The lab's cluster is there before its nodes: they join it.
			ControlPlane: f.cluster.ControlPlane,
			Delays:       talosnode.RealDelays().Scale(1 / f.opts.Speed),
		},
		Log: f.opts.Log,
	}
	for _, d := range f.disks(n) {
		options.Disks = append(options.Disks, qemu.DiskSpec{
			Serial: d.Serial, WWN: d.WWN, Model: "QEMU LAB", Size: d.Size / layout.MiB * layout.MiB, NVMe: f.opts.NVMe,
		})
	}
	for _, one := range f.faultsOf(n) {
		if one.kind.guest != nil {
			one.kind.guest(&options)
		}
		if one.kind.talos != nil {
			one.kind.talos(&options.Talos.Faults)
		}
	}
	m, err := f.opts.Kit.New(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("cannot make the QEMU machine %s: %w", name, err)
	}
	return m, nil
}

// deliveries lists what machines of this kind can be delivered with.
func (o Options) deliveries() []simulated.Delivered {
	if o.Kit == nil {
		return simulated.Deliveries()
	}
	var all []simulated.Delivered
	for _, d := range qemu.Deliveries() {
		all = append(all, simulated.Delivered(d))
	}
	return all
}
