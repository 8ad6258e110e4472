package write

import (
	"errors"
	"io"
	"os"
	"sort"
	"syscall"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/stage"
	"github.com/ironlot/ironlot/internal/fault"
)

// staged is the staged image, open.
type staged struct {
	*os.File
	source io.ReaderAt // what is written: the file, or what compose makes of it
	size   int64       // of source
	layout image.Layout
	data   []extent // of source; everything else is a hole, which reads as zeros
	tail   []byte   // partition table for the disk's end; nil: the blank one stays
}

// ReadAt reads what is written to the disk.
func (s *staged) ReadAt(p []byte, off int64) (int, error) { return s.source.ReadAt(p, off) }

// extent is a range of bytes.
type extent struct{ start, end int64 }

// from is the part of e that starts at off or behind it.
func (e extent) from(off int64) extent { return extent{max(e.start, off), e.end} }

// openStaged opens the staged image if it is the one that is asked for.
func openStaged(h host.Host, spec api.WriteSpec) (*staged, error) {
	found, err := stage.Find(h.RAMDir())
	if err != nil {
		return nil, err
	}
	if found.DataSHA256 == "" || found.DataSHA256 != spec.DataSHA256 || found.RawSize != spec.RawSize {
		return nil, fault.Lost("another image is staged: %d bytes with data digest %s, expected were %d with %s",
			found.RawSize, found.DataSHA256, spec.RawSize, spec.DataSHA256)
	}
	f, err := os.Open(stage.Image(h.RAMDir()))
	if err != nil {
		return nil, fault.Lost("the staged image cannot be opened: %w", err)
	}
	s := &staged{File: f, source: f, size: found.RawSize}
	if err := s.inspect(); err != nil {
		_ = f.Close() // nothing was written to it
		return nil, err
	}
	return s, nil
}

// inspect reads the image's layout and finds its holes.
func (s *staged) inspect() error {
	head := make([]byte, image.HeadSize)
	n, err := s.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return s.lost(err)
	}
	if s.layout, err = image.ParseLayout(head[:n]); err != nil {
		return err
	}
	s.data = extents(s.File, s.size)
	return nil
}

// extents lists where a file has data. A filesystem that cannot tell has
// data everywhere.
func extents(f *os.File, size int64) (all []extent) {
	const seekData, seekHole = 3, 4 // lseek(2)
	for off := int64(0); off < size; {
		start, err := f.Seek(off, seekData)
		if errors.Is(err, syscall.ENXIO) {
			break // a hole up to the end
		}
		end, holeErr := f.Seek(start, seekHole)
		if err != nil || holeErr != nil || start < off || end <= start {
			return []extent{{0, size}}
		}
		off = min(end, size)
		all = append(all, extent{start, off})
	}
	return all
}

// hole reports whether a range has no data.
func (s *staged) hole(off, n int64) bool {
	i := sort.Search(len(s.data), func(i int) bool { return s.data[i].end > off })
	return i == len(s.data) || s.data[i].start >= off+n
}

func (s *staged) lost(err error) error {
	return fault.Lost("the staged image %s cannot be read: %w", s.Name(), err)
}
