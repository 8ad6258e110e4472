package simulated

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/ironlot/ironlot/internal/agent/state"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// Sizes of what Talos makes on its first boot.
const (
	stateSize  = 100 * layout.MiB
	smallState = layout.MiB // on disks too small for the real size
)

// stateMagic begins the simulated filesystem in a STATE partition that the
// lab's Talos has made: magic, length, SHA-256, config. One that was written
// before the first boot is XFS and is read as such. Anything else counts as a
// partition that has no config.
const stateMagic = "IRONLOT-LAB-STATE\x00\x00\x01"

// maxConfig bounds what is read from a STATE partition.
const maxConfig = 4 << 20

func (b *boot) runTalos() {
	if !b.sleep(b.m.opts.Delays.Normal) {
		return
	}
	store := &Store{b: b}
	twice := store.count(layout.Ephemeral) > 1
	b.m.logf("talos: system disk %s, STATE %s", store.where(layout.Meta), store.where(layout.State))
	b.m.setState(InTalos)
	if b.m.opts.Talos == nil {
		<-b.ctx.Done()
		return
	}
	err := b.m.opts.Talos(b.ctx, TalosBoot{
		Machine:       b.m.opts.Name,
		Address:       net.JoinHostPort(b.m.opts.Address, strconv.Itoa(b.m.opts.TalosPort)),
		Store:         store,
		TwoEphemerals: twice,
		Wire:          b.wire,
		Log:           func(line string) { b.m.logf("talos: %s", line) },
	})
	if err != nil && b.ctx.Err() == nil {
		b.hang("talos: %v", err)
	}
}

// Store is where Talos keeps its config: the first partition named STATE in
// device order, whatever disk it is on and however old it is, as the real one
// was seen to do. It is made behind META, with EPHEMERAL, when a config is
// saved first. The filesystem in it is simulated.
type Store struct {
	b  *boot
	mu sync.Mutex
}

// Load gives the config that is there, nil when there is none.
func (s *Store) Load() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, p, ok := s.find(layout.State)
	if !ok {
		return nil, nil
	}
	config, err := readState(s.b.file(d), p)
	if err != nil || config == nil {
		return nil, err
	}
	return config, s.makeEphemeral()
}

// makeEphemeral makes EPHEMERAL behind a STATE that was there first.
func (s *Store) makeEphemeral() error {
	d, _, ok := s.find(layout.Meta)
	if !ok || s.count(layout.Ephemeral) > 0 {
		return nil
	}
	if _, err := layout.Add(s.b.file(d), d.spec.Size, layout.Part{Name: layout.Ephemeral, Type: layout.TypeLinux}); err != nil {
		return fmt.Errorf("cannot make EPHEMERAL on %s: %w", d.spec.Serial, err)
	}
	return nil
}

// Save keeps a config.
func (s *Store) Save(config []byte) error {
	s.b.m.hold("keep config")
	s.mu.Lock()
	defer s.mu.Unlock()
	d, p, ok := s.find(layout.State)
	if !ok {
		var err error
		if d, p, err = s.create(); err != nil {
			return err
		}
	}
	if err := writeState(s.b.file(d), p, config); err != nil {
		return fmt.Errorf("cannot keep the config on STATE of %s: %w", d.spec.Serial, err)
	}
	return nil
}

// create makes STATE behind META, and EPHEMERAL in what is left of the disk
// unless another disk has one.
func (s *Store) create() (*disk, layout.Part, error) {
	d, _, ok := s.find(layout.Meta)
	if !ok {
		return nil, layout.Part{}, errors.New("no disk has a META partition")
	}
	size := int64(stateSize)
	if d.spec.Size < 4*stateSize {
		size = smallState
	}
	p, err := layout.Add(s.b.file(d), d.spec.Size, layout.Part{Name: layout.State, Type: layout.TypeLinux, Size: size})
	if err != nil {
		return nil, p, fmt.Errorf("cannot make STATE on %s: %w", d.spec.Serial, err)
	}
	return d, p, s.makeEphemeral()
}

// find gives the first partition of a name in device order, and its disk.
func (s *Store) find(name string) (*disk, layout.Part, bool) {
	for _, slot := range s.b.order {
		d := s.b.m.disks[slot]
		if p, ok := layout.Find(layout.Read(d.f, d.spec.Size), name); ok {
			return d, p, true
		}
	}
	return nil, layout.Part{}, false
}

// where says on which disk a partition is found.
func (s *Store) where(name string) string {
	d, _, ok := s.find(name)
	if !ok {
		return "not there yet"
	}
	return "on " + s.b.names[d.slot-1] + " (" + d.spec.Serial + ")"
}

func (s *Store) count(name string) int {
	n := 0
	for _, d := range s.b.m.disks {
		if _, ok := layout.Find(layout.Read(d.f, d.spec.Size), name); ok {
			n++
		}
	}
	return n
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

func readState(f layout.File, p layout.Part) ([]byte, error) {
	r := io.NewSectionReader(f, p.Offset, p.Size)
	if config, err := state.Config(r); err == nil || !errors.Is(err, state.ErrNoConfig) {
		return config, err
	}
	head := make([]byte, len(stateMagic)+8+sha256.Size)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint64(head[len(stateMagic):])
	if string(head[:len(stateMagic)]) != stateMagic || length > maxConfig {
		return nil, nil
	}
	config := make([]byte, length)
	if _, err := io.ReadFull(r, config); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(config); string(sum[:]) != string(head[len(stateMagic)+8:]) {
		return nil, errors.New("the filesystem of STATE is damaged")
	}
	return config, nil
}

func writeState(f layout.File, p layout.Part, config []byte) error {
	if len(config) > maxConfig {
		return errors.New("no space left on device")
	}
	sum := sha256.Sum256(config)
	record := binary.BigEndian.AppendUint64([]byte(stateMagic), uint64(len(config)))
	record = append(append(record, sum[:]...), config...)
	if int64(len(record)) > p.Size {
		return errors.New("no space left on device")
	}
	_, err := f.WriteAt(record, p.Offset)
	return err
}

// PutStaleState puts an old STATE partition with a config on an otherwise
// empty disk, as an earlier life of the machine may have left it.
func (m *Machine) PutStaleState(slot int, config []byte) error {
	d := m.disks[slot-1]
	err := layout.Create(d.f, d.spec.Size, "stale "+d.spec.Serial, []layout.Part{{Name: layout.State, Type: layout.TypeLinux, Size: smallState * 4}})
	if err != nil {
		return err
	}
	p, _ := layout.Find(layout.Read(d.f, d.spec.Size), layout.State)
	return writeState(d.f, p, config)
}

// StateConfig gives the config that Talos would find on the disks now, by
// slot order, and nil when there is none.
func (m *Machine) StateConfig(ctx context.Context) ([]byte, error) {
	for _, d := range m.disks {
		if p, ok := layout.Find(layout.Read(d.f, d.spec.Size), layout.State); ok {
			return readState(d.f, p)
		}
	}
	return nil, ctx.Err()
}
