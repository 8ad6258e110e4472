package image

import (
	"bytes"
	"io"
)

// Block is the granularity, in bytes, in which zeros are left out: the page
// size of a RAM filesystem and of the page cache.
const Block = 4096

// IsZero reports whether p holds nothing but zeros.
func IsZero(p []byte) bool {
	// A slice is all zeros if it starts with one and equals itself shifted
	// by a byte; bytes.Equal is the fastest comparison that there is.
	return len(p) == 0 || p[0] == 0 && bytes.Equal(p[:len(p)-1], p[1:])
}

// WriteData writes the blocks of p that are not zeros to w, p being what
// belongs at off, and tells how many bytes it wrote. Neighbouring blocks go
// out in one write. The caller makes sure that what is left out reads as zeros.
func WriteData(w io.WriterAt, p []byte, off int64) (int64, error) {
	var written int64
	err := eachData(p, func(start, end int) error {
		n, err := w.WriteAt(p[start:end], off+int64(start))
		written += int64(n)
		return err
	})
	return written, err
}

// eachData finds the runs of blocks that are not zeros.
func eachData(p []byte, do func(start, end int) error) error {
	for start := 0; start < len(p); {
		end := min(start+Block, len(p))
		if IsZero(p[start:end]) {
			start = end
			continue
		}
		for end < len(p) && !IsZero(p[end:min(end+Block, len(p))]) {
			end = min(end+Block, len(p))
		}
		if err := do(start, end); err != nil {
			return err
		}
		start = end
	}
	return nil
}
