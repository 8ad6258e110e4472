//go:build unix

package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironlot/ironlot/internal/flock"
)

// lock is a file lock, gone with the process at the latest.
type lock struct{ f *os.File }

// tryLock takes a lock for oneself or gives flock.ErrHeld.
func tryLock(path string) (*lock, error) {
	f, err := flock.Try(path)
	if err != nil {
		return nil, err
	}
	return &lock{f}, nil
}

// isHeld reports whether somebody has taken a lock. Looking takes a shared
// lock for an instant, so that those who look do not see each other.
func isHeld(path string) (bool, error) {
	f, err := flock.TryShared(path)
	if err == nil {
		_ = f.Close()
		return false, nil
	}
	if errors.Is(err, flock.ErrHeld) {
		return true, nil
	}
	return false, err
}

// takeLock waits for a lock, at most so long, else flock.ErrHeld.
func takeLock(ctx context.Context, path string, most time.Duration) (*lock, error) {
	for start := time.Now(); ; {
		l, err := tryLock(path)
		if !errors.Is(err, flock.ErrHeld) || time.Since(start) > most {
			return l, err
		}
		if err := wait(ctx); err != nil {
			return nil, err
		}
	}
}

// write replaces what the lock file holds.
func (l *lock) write(text string) error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt([]byte(text), 0)
	return err
}

// release gives the lock back.
func (l *lock) release() { _ = l.f.Close() }

// ownDir makes a directory that nobody else can enter, in a place where
// anybody may have made it before us.
func ownDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a directory of our own: %w", path, unix.EPERM)
	}
	return os.Chmod(path, 0o700)
}
