// Package flock takes file locks that end with the process at the latest.
package flock

import (
	"errors"
	"os"
	"syscall"
)

// ErrHeld says that another process, or this one, holds the lock.
var ErrHeld = errors.New("the lock is held")

// Try locks a file, which is made when it is not there, until it is closed, or
// gives ErrHeld. What the file holds stays.
func Try(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return file, nil
}
