// Package state is where a Talos node of the lab keeps its config: partitions
// named STATE on real or simulated disks, found as real Talos was seen to
// find them. The filesystem that the lab's Talos makes in STATE is simulated:
// magic, length, SHA-256 and the config. One that was written before the first
// boot is XFS, as the real one, and is read as such.
package state

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	written "github.com/ironlot/ironlot/internal/agent/state"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// Sizes of what Talos makes on its first boot.
const (
	size  = 100 * layout.MiB
	small = 4 * layout.MiB // on disks too small for the real size
)

// magic begins a STATE partition; one without it has no config.
const magic = "IRONLOT-LAB-STATE\x00\x00\x01"

// maxConfig bounds what is read from a STATE partition, in bytes.
const maxConfig = 4 << 20

// Disk is a disk of the machine.
type Disk struct {
	layout.File
	Size   int64 // bytes
	Name   string
	Serial string
}

// Store finds STATE on the first disk in device order that has one, whatever
// disk it is and however old, as the real one was seen to do. It makes STATE
// behind META, with EPHEMERAL, when a config is saved first.
type Store struct {
	// Disks lists the disks in device order.
	Disks func() ([]Disk, error)

	mu sync.Mutex
}

// Load gives the config that is there, nil when there is none.
func (s *Store) Load() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	disks, err := s.Disks()
	if err != nil {
		return nil, err
	}
	d, p, ok := find(disks, layout.State)
	if !ok {
		return nil, nil
	}
	config, err := Read(d, p)
	if err != nil || config == nil {
		return nil, err
	}
	return config, makeEphemeral(disks) // behind a STATE that was there first
}

// Save keeps a config.
func (s *Store) Save(config []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	disks, err := s.Disks()
	if err != nil {
		return err
	}
	d, p, ok := find(disks, layout.State)
	if !ok {
		if d, p, err = create(disks); err != nil {
			return err
		}
	}
	if err := Write(d, p, config); err != nil {
		return fmt.Errorf("cannot keep the config on STATE of %s: %w", d.Serial, err)
	}
	return nil
}

// Where says on which disk a partition is found.
func (s *Store) Where(name string) string {
	disks, err := s.Disks()
	if err != nil {
		return err.Error()
	}
	d, _, ok := find(disks, name)
	if !ok {
		return "not there yet"
	}
	return "on " + d.Name + " (" + d.Serial + ")"
}

// Count tells how many disks have a partition of that name.
func (s *Store) Count(name string) (int, error) {
	disks, err := s.Disks()
	return count(disks, name), err
}

func count(disks []Disk, name string) int {
	n := 0
	for _, d := range disks {
		if _, ok := layout.Find(layout.Read(d, d.Size), name); ok {
			n++
		}
	}
	return n
}

func find(disks []Disk, name string) (Disk, layout.Part, bool) {
	for _, d := range disks {
		if p, ok := layout.Find(layout.Read(d, d.Size), name); ok {
			return d, p, true
		}
	}
	return Disk{}, layout.Part{}, false
}

// create makes STATE behind META, and EPHEMERAL in what is left of the disk
// unless another disk has one.
func create(disks []Disk) (Disk, layout.Part, error) {
	d, _, ok := find(disks, layout.Meta)
	if !ok {
		return d, layout.Part{}, errors.New("no disk has a META partition")
	}
	want := int64(size)
	if d.Size < 4*size {
		want = small
	}
	p, err := layout.Add(d, d.Size, layout.Part{Name: layout.State, Type: layout.TypeLinux, Size: want})
	if err != nil {
		return d, p, fmt.Errorf("cannot make STATE on %s: %w", d.Serial, err)
	}
	return d, p, makeEphemeral(disks)
}

// makeEphemeral makes EPHEMERAL in what is left of the system disk unless a
// disk has one.
func makeEphemeral(disks []Disk) error {
	d, _, ok := find(disks, layout.Meta)
	if !ok || count(disks, layout.Ephemeral) > 0 {
		return nil
	}
	if _, err := layout.Add(d, d.Size, layout.Part{Name: layout.Ephemeral, Type: layout.TypeLinux}); err != nil {
		return fmt.Errorf("cannot make EPHEMERAL on %s: %w", d.Serial, err)
	}
	return nil
}

// Read reads the config in a STATE partition, nil when there is none.
func Read(f layout.File, p layout.Part) ([]byte, error) {
	r := io.NewSectionReader(f, p.Offset, p.Size)
	if config, err := written.Config(r); err == nil || !errors.Is(err, written.ErrNoConfig) {
		return config, err
	}
	head := make([]byte, len(magic)+8+sha256.Size)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint64(head[len(magic):])
	if string(head[:len(magic)]) != magic || length > maxConfig {
		return nil, nil
	}
	config := make([]byte, length)
	if _, err := io.ReadFull(r, config); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(config); string(sum[:]) != string(head[len(magic)+8:]) {
		return nil, errors.New("the filesystem of STATE is damaged")
	}
	return config, nil
}

// Write writes a config into a STATE partition.
func Write(f layout.File, p layout.Part, config []byte) error {
	sum := sha256.Sum256(config)
	record := binary.BigEndian.AppendUint64([]byte(magic), uint64(len(config)))
	record = append(append(record, sum[:]...), config...)
	if len(config) > maxConfig || int64(len(record)) > p.Size {
		return errors.New("no space left on device")
	}
	_, err := f.WriteAt(record, p.Offset)
	return err
}

// PutStale makes a partition table that holds nothing but a STATE with a
// config, as an earlier life of the machine may have left it.
func PutStale(d Disk, config []byte) error {
	if err := layout.Create(d, d.Size, "stale "+d.Serial, []layout.Part{{Name: layout.State, Type: layout.TypeLinux, Size: small}}); err != nil {
		return err
	}
	p, _ := layout.Find(layout.Read(d, d.Size), layout.State)
	return Write(d, p, config)
}
