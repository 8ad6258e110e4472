package qemu

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/state"
)

// EditDisk opens the disk in a slot, counted from 1, from outside. The
// machine must be off to be changed.
func (m *Machine) EditDisk(slot int, edit func(layout.File, int64) error) error {
	d := m.disks[slot-1]
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(edit(f, d.spec.Size), f.Sync(), f.Close())
}

// PutStaleState puts an old STATE partition with a config on an otherwise
// empty disk, as an earlier life of the machine may have left it.
func (m *Machine) PutStaleState(slot int, config []byte) error {
	return m.EditDisk(slot, func(f layout.File, size int64) error {
		return state.PutStale(state.Disk{File: f, Size: size, Serial: m.disks[slot-1].spec.Serial}, config)
	})
}

// StateConfig gives the config that Talos would find on the disks now, by
// slot order, and nil when there is none.
func (m *Machine) StateConfig() ([]byte, error) {
	for slot := range m.disks {
		var config []byte
		err := m.EditDisk(slot+1, func(f layout.File, size int64) (err error) {
			if p, ok := layout.Find(layout.Read(f, size), layout.State); ok {
				config, err = state.Read(f, p)
			}
			return err
		})
		if err != nil || config != nil {
			return config, err
		}
	}
	return nil, nil
}

// Digest is the SHA-256 of the first bytes of the disk in a slot, counted
// from 1, hex.
func (m *Machine) Digest(slot int, length int64) (string, error) {
	h := sha256.New()
	err := m.disks[slot-1].read(func(f *os.File) error {
		_, err := io.Copy(h, io.NewSectionReader(f, 0, length))
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
