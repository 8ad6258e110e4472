package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
)

// readers is how many chunks are read back and compared at once, each of
// readChunk bytes: a disk is busy only with several requests in flight, and
// what was read is best compared while it is in a processor's cache.
//
// Of holes that are only sampled one chunk of every sampleStep is read: disks
// that do not zero what they are told to do so for whole ranges.
const (
	readers    = 4
	readChunk  = mib
	sampleStep = 64
)

// difference is the first place where the disk is not what the image is.
type difference struct {
	off       int64
	got, want byte
	hole      bool // the image has no data around it
}

// verify reads back everything behind the first MiB, or a sample of the holes. A device whose zeros are
// none gets all of the image written, zeros included, zeros behind it too, and
// one more look.
func (w *writer) verify(ctx context.Context) error {
	diff, err := w.compare(ctx)
	if err == nil && diff != nil && diff.hole && w.done.ZeroMethod != host.Written {
		report.Log(w.rep, "saw", fmt.Sprintf("%s does not read as zeros at byte %d in spite of %s: all of the image is written, zeros included",
			w.name, diff.off, w.done.ZeroMethod))
		if err := w.writeAll(ctx); err != nil {
			return err
		}
		diff, err = w.compare(ctx)
	}
	if err != nil {
		return err
	}
	if diff != nil {
		return w.differs(*diff)
	}
	return nil
}

// writeAll writes what was to be zeroed.
func (w *writer) writeAll(ctx context.Context) error {
	w.done.ZeroMethod = host.Written
	if err := w.copy(ctx, true); err != nil {
		return err
	}
	from, end := max(w.src.size, edge), w.zeroEnd()
	meter := report.NewMeter(w.rep, "zero the disk", max(end-from, 0))
	defer meter.End()
	return w.writeZeros(ctx, from, end, meter)
}

func (w *writer) differs(d difference) error {
	return fault.Operator("it was left with a blank partition table; "+anotherDisk,
		"%s does not hold what was written: byte %d reads %#02x, and the image has %#02x", w.name, d.off, d.got, d.want)
}

// compare finds the first difference behind the first MiB, nil if there is none.
func (w *writer) compare(ctx context.Context) (*difference, error) {
	meter := report.NewMeter(w.rep, "read the disk back", w.src.size)
	defer meter.End()
	var (
		next  atomic.Int64
		read  atomic.Int64
		mu    sync.Mutex
		first *difference
	)
	next.Store(edge)
	group, ctx := errgroup.WithContext(ctx)
	for range readers {
		group.Go(func() error {
			want, got := make([]byte, readChunk), make([]byte, readChunk)
			for {
				off := next.Add(readChunk) - readChunk
				mu.Lock()
				over := first != nil // chunks before it are in other hands
				mu.Unlock()
				if over || off >= w.src.size {
					return nil
				}
				if ctx.Err() != nil {
					return stopped(ctx)
				}
				n := min(readChunk, w.src.size-off)
				if w.passes(off, n) {
					meter.Add(n)
					continue
				}
				diff, err := w.compareChunk(want[:n], got, off)
				if err != nil {
					return err
				}
				read.Add(n)
				meter.Add(n)
				if diff != nil {
					mu.Lock()
					if first == nil || diff.off < first.off {
						first = diff
					}
					mu.Unlock()
				}
			}
		})
	}
	err := group.Wait()
	w.done.BytesVerified = read.Load()
	return first, err
}

// passes reports whether a chunk is not read back.
func (w *writer) passes(off, n int64) bool {
	return w.onlyData && w.src.hole(off, n) && off/readChunk%sampleStep != 0
}

// compareChunk compares len(want) bytes at off; got is room to read into.
func (w *writer) compareChunk(want, got []byte, off int64) (*difference, error) {
	hole := w.src.hole(off, int64(len(want)))
	if !hole {
		if _, err := w.src.ReadAt(want, off); err != nil {
			return nil, w.src.lost(err)
		}
	}
	// A direct read ends at a whole block or at the disk's end.
	n := min((int64(len(want))+image.Block-1)/image.Block*image.Block, w.disk.Size()-off)
	if err := w.readBack(got[:n], off); err != nil {
		return nil, err
	}
	if hole {
		if image.IsZero(got[:len(want)]) {
			return nil, nil
		}
		clear(want)
	}
	return firstDifference(want, got[:len(want)], off), nil
}

func firstDifference(want, got []byte, off int64) *difference {
	if bytes.Equal(want, got) {
		return nil
	}
	i := 0
	for want[i] == got[i] {
		i++
	}
	block := i / image.Block * image.Block
	return &difference{
		off: off + int64(i), got: got[i], want: want[i],
		hole: image.IsZero(want[block:min(block+image.Block, len(want))]),
	}
}

// compareHead compares the first MiB.
func (w *writer) compareHead(want []byte) error {
	got := make([]byte, len(want))
	if err := w.readBack(got, 0); err != nil {
		return err
	}
	if diff := firstDifference(want, got, 0); diff != nil {
		return w.differs(*diff)
	}
	return nil
}

// readBack reads past the cache.
func (w *writer) readBack(p []byte, off int64) error {
	n, err := w.disk.ReadDirectAt(p, off)
	if n == len(p) && errors.Is(err, io.EOF) {
		err = nil // io.ReaderAt allows it at the end
	}
	return w.failed("read back", off, int64(len(p)), err)
}
