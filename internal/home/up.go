package home

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/flock"
)

// Up is what a running `up` tells the other commands.
type Up struct {
	Address string `json:"address"` // of Temporal, host:port
	WebUI   string `json:"webUI"`   // URL
	PID     int    `json:"pid"`
}

// Lock is held by the one process that uses the database.
type Lock struct {
	home *Home
	file *os.File
}

// Lock takes the directory for this process. Temporal's database must never
// have two servers.
func (h *Home) Lock() (*Lock, error) {
	file, err := flock.Try(filepath.Join(h.Dir, "lock"))
	if err == nil {
		return &Lock{home: h, file: file}, nil
	}
	if !errors.Is(err, flock.ErrHeld) {
		return nil, fault.Operator("set "+EnvHome+" to a directory on a local file system that you may write", "the state directory %s cannot be locked: %w", h.Dir, err)
	}
	if up, ok := h.Up(); ok {
		return nil, fault.Operator("use that one, or stop it first", "another `up` (process %d, Temporal on %s) uses %s", up.PID, up.Address, h.Dir)
	}
	return nil, fault.Operator("stop it first, or set "+EnvHome+" to another directory", "another `up` uses %s", h.Dir)
}

// Tell lets the other commands know where Temporal is, until Unlock.
func (l *Lock) Tell(up Up) error {
	data, err := json.Marshal(up)
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.home.upFile(), data, 0o600); err != nil {
		return fault.Operator("free some room on the disk", "the state directory cannot be written: %w", err)
	}
	return nil
}

// Unlock gives the directory back.
func (l *Lock) Unlock() error {
	err := os.Remove(l.home.upFile())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.file.Close())
}

// Up gives what the last `up` told. One that was killed leaves its word
// behind, so an address is a hint: try it.
func (h *Home) Up() (Up, bool) {
	var up Up
	data, err := os.ReadFile(h.upFile())
	if err != nil || json.Unmarshal(data, &up) != nil {
		return Up{}, false
	}
	return up, up.Address != ""
}

func (h *Home) upFile() string { return filepath.Join(h.Dir, "up.json") }
