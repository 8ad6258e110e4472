//go:build unix

// Package flock takes file locks (flock(2)) that end with the process at the
// latest.
package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another process, or this one, holds the lock.
var ErrHeld = errors.New("the lock is held")

// Try locks a file for oneself, which is made when it is not there, until it is
// closed, or gives ErrHeld. What the file holds stays.
func Try(path string) (*os.File, error) { return try(path, unix.LOCK_EX) }

// TryShared is Try for those who share the lock with each other.
func TryShared(path string) (*os.File, error) { return try(path, unix.LOCK_SH) }

func try(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return nil, &os.PathError{Op: "lock", Path: path, Err: err}
}
