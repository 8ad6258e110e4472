//go:build !linux

package simulated

import (
	"io"
	"os"
)

// punchHole writes zeros where files have no holes.
func punchHole(f *os.File, off, length int64) error {
	zeros := make([]byte, 1<<20)
	for out := io.NewOffsetWriter(f, off); length > 0; {
		n, err := out.Write(zeros[:min(length, int64(len(zeros)))])
		if err != nil {
			return err
		}
		length -= int64(n)
	}
	return nil
}
