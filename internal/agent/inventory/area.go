package inventory

import (
	"errors"
	"io"

	"github.com/ironlot/ironlot/internal/agent/host"
)

// page is the alignment of reads past the cache.
const page = 4096

// directReader reads any range past the page cache: what the disk holds, not
// what the kernel remembers of it.
type directReader struct{ disk host.Disk }

// ReadAt implements io.ReaderAt.
func (r *directReader) ReadAt(p []byte, off int64) (int, error) {
	size := r.disk.Size()
	if off < 0 || off >= size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), size-off)
	start := off &^ (page - 1)
	end := min((off+want+page-1)&^(page-1), size)
	buf := p
	if start != off || end-start != int64(len(p)) {
		buf = make([]byte, end-start)
	}
	n, err := r.disk.ReadDirectAt(buf, start)
	if int64(n) < end-start {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	copied := copy(p, buf[off-start:])
	if copied < len(p) {
		return copied, io.EOF
	}
	return copied, nil
}

// window is how much of both ends of an area is looked at. All signatures
// but LUKS2's far second headers lie there.
const window = 1 << 20

// area is a whole disk or a partition, its two ends in memory.
type area struct {
	r          io.ReaderAt
	offset     int64 // on the disk
	size       int64
	head, tail []byte
}

// ends is the memory for an area's two ends; what was read into it before is
// gone. A disk has many areas, and one is looked at after the other.
type ends struct{ head, tail []byte }

func newEnds(size int64) *ends {
	n := min(window, size)
	return &ends{head: make([]byte, n), tail: make([]byte, n)}
}

// newArea reads an area that is no larger than what the ends were made for.
func newArea(r io.ReaderAt, offset, size int64, into *ends) (*area, error) {
	n := min(window, size)
	a := &area{r: r, offset: offset, size: size, head: into.head[:n], tail: into.tail[:n]}
	if err := full(r, a.head, offset); err != nil {
		return nil, err
	}
	return a, full(r, a.tail, offset+size-n)
}

func full(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	return err
}

// at gives n bytes at an offset of the area, nil where there are none, and
// nil for a place between the two ends that cannot be read.
func (a *area) at(off int64, n int) []byte {
	end := off + int64(n)
	if off < 0 || end > a.size {
		return nil
	}
	if end <= int64(len(a.head)) {
		return a.head[off:end]
	}
	if start := a.size - int64(len(a.tail)); off >= start {
		return a.tail[off-start : end-start]
	}
	buf := make([]byte, n)
	if full(a.r, buf, a.offset+off) != nil {
		return nil
	}
	return buf
}

// has reports whether the bytes stand at an offset.
func (a *area) has(off int64, value string) bool {
	return string(a.at(off, len(value))) == value
}

// text is a string of at most n bytes, to its first NUL, printable.
func (a *area) text(off int64, n int) string {
	return printable(a.at(off, n))
}

func printable(b []byte) string {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c == 0 {
			break
		}
		if c < 0x20 || c > 0x7e {
			c = '?'
		}
		out = append(out, c)
	}
	for len(out) > 0 && out[len(out)-1] == ' ' {
		out = out[:len(out)-1]
	}
	return string(out)
}
