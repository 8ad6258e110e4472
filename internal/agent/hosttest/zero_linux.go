package hosttest

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// zero punches a hole, which keeps the file sparse.
func zero(f *os.File, off, length int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, length)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return writeZeros(f, off, length)
	}
	return err
}
