package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/flock"
)

// marker is the file that tells a lab's directory from any other. The lab that
// runs there holds its lock, so it is never removed.
const marker = ".ironlot-lab"

// markerText tells people what the directory is, and a second lab whose.
const markerText = "Process %d has run a simulated lab in this directory, which is written anew at every start.\n"

// takeDir makes the directory and takes it for this process. One with foreign
// files is refused: the lab would write over them.
func (f *Fleet) takeDir() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the lab's directory: %w", err)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("cannot read the lab's directory: %w", err)
	}
	_, err = os.Stat(f.Path(marker))
	if len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		return fault.Operator("name an empty one", "the directory %s holds files that are not a lab's", f.dir)
	}
	lock, err := flock.Try(f.Path(marker))
	if errors.Is(err, flock.ErrHeld) {
		return fault.Operator("end that lab, or start this one with another --dir and --base", "another lab%s runs in %s", f.holder(), f.dir)
	}
	if err != nil {
		return fault.Operator("name one on a local file system that you may write", "the lab's directory cannot be locked: %w", err)
	}
	f.lock = lock
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintf(lock, markerText, os.Getpid())
	return err
}

// holder is the process that the directory's lab told of itself, if it did.
func (f *Fleet) holder() string {
	text, err := os.ReadFile(f.Path(marker))
	pid := 0
	if err != nil {
		return ""
	}
	if _, err := fmt.Sscanf(string(text), "Process %d", &pid); err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

// leaveDir removes images and disks, if this process has made some, and gives
// the directory back. All else stays, for the runs that were started with it
// may be looked at.
func (f *Fleet) leaveDir() error {
	var errs []error
	if f.filled {
		errs = append(errs, os.RemoveAll(filepath.Join(f.dir, "images")), os.RemoveAll(filepath.Join(f.dir, "machines")))
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}
