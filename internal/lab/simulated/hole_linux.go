package simulated

import (
	"os"

	"golang.org/x/sys/unix"
)

// punchHole keeps the disk's file sparse.
func punchHole(f *os.File, off, length int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, length)
}
