package simulated

import (
	"context"
	"net"
	"strconv"

	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/state"
)

func (b *boot) runTalos() {
	if !b.sleep(b.m.opts.Delays.Normal) {
		return
	}
	store := b.store()
	ephemerals, _ := store.Count(layout.Ephemeral) // an error is that of a boot that is over
	b.m.logf("talos: system disk %s, STATE %s", store.Where(layout.Meta), store.Where(layout.State))
	b.m.setState(InTalos)
	if b.m.opts.Talos == nil {
		<-b.ctx.Done()
		return
	}
	err := b.m.opts.Talos(b.ctx, TalosBoot{
		Machine:       b.m.opts.Name,
		Address:       net.JoinHostPort(b.m.opts.Address, strconv.Itoa(b.m.opts.TalosPort)),
		Store:         store,
		TwoEphemerals: ephemerals > 1,
		Wire:          b.wire,
		Log:           func(line string) { b.m.logf("talos: %s", line) },
	})
	if err != nil && b.ctx.Err() == nil {
		b.hang("talos: %v", err)
	}
}

// store is where the node keeps its config: on the disks, in the order in
// which this boot found them.
func (b *boot) store() *state.Store {
	return &state.Store{Disks: func() ([]state.Disk, error) {
		var all []state.Disk
		for _, slot := range b.order {
			d := b.m.disks[slot]
			all = append(all, state.Disk{File: b.file(d), Size: d.spec.Size, Name: b.names[slot], Serial: d.spec.Serial})
		}
		return all, b.alive(func() error { return nil })
	}}
}

// bootFile is a disk as long as the boot lives.
type bootFile struct {
	b *boot
	d *disk
}

func (b *boot) file(d *disk) layout.File { return bootFile{b, d} }

// ReadAt reads while the boot lives.
func (f bootFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.b.alive(func() error {
		n, err = f.d.f.ReadAt(p, off)
		return err
	})
	return n, err
}

// WriteAt writes while the boot lives.
func (f bootFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.b.alive(func() error {
		n, err = f.d.f.WriteAt(p, off)
		return err
	})
	return n, err
}

// PutStaleState puts an old STATE partition with a config on an otherwise
// empty disk, as an earlier life of the machine may have left it.
func (m *Machine) PutStaleState(slot int, config []byte) error {
	d := m.disks[slot-1]
	return state.PutStale(state.Disk{File: d.f, Size: d.spec.Size, Serial: d.spec.Serial}, config)
}

// StateConfig gives the config that Talos would find on the disks now, by
// slot order, and nil when there is none.
func (m *Machine) StateConfig(ctx context.Context) ([]byte, error) {
	for _, d := range m.disks {
		if p, ok := layout.Find(layout.Read(d.f, d.spec.Size), layout.State); ok {
			return state.Read(d.f, p)
		}
	}
	return nil, ctx.Err()
}
