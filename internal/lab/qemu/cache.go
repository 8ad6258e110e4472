package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// cache keeps what was built, each under the digest of its inputs.
type cache struct{ dir string }

// defaultCache is below the user's cache directory.
func defaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no cache directory, name one: %w", err)
	}
	return filepath.Join(dir, "ironlot", "qemu"), nil
}

// get gives the directory of an entry and builds it first if need be. Two
// processes never build the same: the second waits. What is half built is
// never seen.
func (c cache) get(ctx context.Context, name string, build func(ctx context.Context, dir string) error) (string, error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the cache of the QEMU lab: %w", err)
	}
	dir := filepath.Join(c.dir, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	part, err := os.MkdirTemp(c.dir, "."+name+".")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := build(ctx, part); err != nil {
		return "", err
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return "", err
	}
	return dir, os.Rename(part, dir)
}

// lock waits for an advisory lock, which ends with the process at the latest.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock the cache of the QEMU lab: %w", err)
	}
	return func() { f.Close() }, nil
}
