// Package write puts the staged image onto the system disk and proves that it
// is there.
//
// The order keeps two promises at every moment, through errors, cancellation
// and power loss: the first sector has a boot signature (without one the
// provider's netboot hangs), and a disk that is not known to be right does not
// look like Talos:
//
//  1. A blank GPT is written over both ends of the disk.
//  2. What lies between is zeroed, see zero.go.
//  3. The image's data is written from the first MiB on.
//  4. All of that is read back past the cache and compared, or the data and a
//     sample of the holes where the lot says so.
//  5. The first MiB is written, read back and compared.
//
// Where the run delivers the machine config by STATE, that partition is part of
// what is written in step 3, and the table's second copy goes to the end of the
// disk before step 5.
package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	mib = 1 << 20
	// edge is how much of each end of the disk is dealt with apart: the
	// first and the last MiB.
	edge = mib
	// chunkSize is how much is read at once.
	chunkSize = 4 * mib
	// syncStep is how many bytes are written between two flushes, so that
	// progress is true and the page cache stays small.
	syncStep = 256 * mib
)

// Run writes the staged image to the disk that spec names by identity.
// Nothing is written before everything that can be checked is checked.
// Errors: RescueLost when the staged image is not there, NeedsOperator when
// the disk is not fit or reads back something else, Transient for I/O errors.
func Run(ctx context.Context, h host.Host, spec api.WriteSpec, rep report.Reporter) (run.Written, error) {
	start := time.Now()
	src, err := openStaged(h, spec)
	if err != nil {
		return run.Written{}, err
	}
	defer src.Close()
	info, err := findTarget(ctx, h, spec.System, src)
	if err != nil {
		return run.Written{}, err
	}
	var added *run.StatePartition
	if spec.State != nil {
		if added, err = src.compose(spec.State, int64(info.Size), info.SectorSize); err != nil {
			return run.Written{}, err
		}
	}
	disk, err := openTarget(ctx, h, info)
	if err != nil {
		return run.Written{}, err
	}
	w := &writer{disk: disk, src: src, rep: rep, name: fmt.Sprintf("disk %s (serial %s)", info.Name, info.Serial),
		onlyData: spec.Verify == run.VerifyData, state: spec.State}
	w.done.Serial, w.done.State = info.Serial, added
	err = w.run(ctx)
	if closeErr := disk.Close(); err == nil && closeErr != nil {
		err = fault.Retry("%s cannot be closed: %w", w.name, closeErr)
	}
	if err != nil {
		return run.Written{}, err
	}
	w.done.Seconds = time.Since(start).Seconds()
	return w.done, nil
}

// writer is one writing of the image.
type writer struct {
	disk host.Disk
	src  *staged
	rep  report.Reporter
	name string // of the disk, for errors
	done run.Written
	head []byte // the blank first MiB
	tail []byte // the blank last MiB
	// onlyData says that holes are sampled, not all read back.
	onlyData bool
	// state is what STATE holds, nil without the partition.
	state *api.StateSpec
	// dirty counts the bytes of the image that were written since a flush.
	dirty int64
}

func (w *writer) run(ctx context.Context) error {
	report.Log(w.rep, "plan", fmt.Sprintf("write %d bytes to %s, which has %d", w.src.size, w.name, w.disk.Size()))
	if err := w.blank(); err != nil {
		return err
	}
	if err := w.zero(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := w.copy(ctx, false); err != nil {
		return err
	}
	w.done.MBPerSecond = float64(w.done.BytesWritten) / 1e6 / max(time.Since(start).Seconds(), 1e-6)
	if err := w.verify(ctx); err != nil {
		return err
	}
	if err := w.checkState(w.state); err != nil {
		return err
	}
	if err := w.commit(ctx); err != nil {
		return err
	}
	if err := w.disk.Reread(); err != nil {
		// The machine is reset next, and its firmware reads the table anew.
		report.Log(w.rep, "saw", fmt.Sprintf("the kernel did not read the partition table of %s again: %v", w.name, err))
	}
	report.Log(w.rep, "did", fmt.Sprintf("%s equals the image: %d bytes written, %d zeroed by %s, %d compared",
		w.name, w.done.BytesWritten, w.done.BytesZeroed, w.done.ZeroMethod, w.done.BytesVerified))
	return nil
}

// blank writes a GPT without partitions over both ends of the disk.
func (w *writer) blank() error {
	head, tail, err := gpt.Blank(w.disk.Size(), w.disk.SectorSize())
	if err != nil {
		return fault.Operator("it is no fit disk: "+plan.AnotherDisk, "%s cannot take a partition table: %w", w.name, err)
	}
	w.head = make([]byte, edge)
	copy(w.head, head)
	w.tail = w.edgeWith(tail)
	if err := w.write(w.head, 0); err != nil {
		return err
	}
	if err := w.write(w.tail, w.disk.Size()-edge); err != nil {
		return err
	}
	return w.sync()
}

// copy writes the image from the first MiB on: its data, or all of it.
func (w *writer) copy(ctx context.Context, all bool) error {
	meter := report.NewMeter(w.rep, "write the image", w.src.size)
	defer meter.End()
	parts := w.src.data
	if all {
		parts = []extent{{0, w.src.size}}
	}
	buf := make([]byte, chunkSize)
	for _, part := range parts {
		if err := w.copyPart(ctx, part.from(edge), buf, all, meter); err != nil {
			return err
		}
	}
	// The last MiB of the disk holds the blank GPT's backup, not zeros.
	last := extent{w.disk.Size() - edge, w.src.size}
	if err := w.copyPart(ctx, last, buf, true, meter); err != nil {
		return err
	}
	meter.Set(w.src.size)
	return w.sync()
}

func (w *writer) copyPart(ctx context.Context, part extent, buf []byte, all bool, meter *report.Meter) error {
	for off := part.start; off < part.end; off += chunkSize {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		p := buf[:min(chunkSize, part.end-off)]
		if _, err := w.src.ReadAt(p, off); err != nil {
			return w.src.lost(err)
		}
		if err := w.put(p, off, all); err != nil {
			return err
		}
		meter.Set(off)
	}
	return nil
}

// put writes a piece of the image: its data, or all of it.
func (w *writer) put(p []byte, off int64, all bool) (err error) {
	n := int64(len(p))
	if all {
		err = w.write(p, off)
	} else {
		n, err = image.WriteData(w.disk, p, off)
		err = w.failed("written", off, int64(len(p)), err)
	}
	w.done.BytesWritten += n
	w.dirty += n
	if err == nil && w.dirty >= syncStep {
		err = w.sync()
	}
	return err
}

// commit writes the first MiB and checks it, after the table's second copy
// where there is one. If they do not read back right, the blank ones are put
// back.
func (w *writer) commit(ctx context.Context) error {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	head := make([]byte, edge)
	if _, err := w.src.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return w.src.lost(err)
	}
	err := w.commitTail()
	if err == nil {
		err = w.write(head, 0)
	}
	if err == nil {
		err = w.sync()
	}
	if err == nil {
		err = w.compareHead(head)
	}
	if err != nil {
		if undo := errors.Join(w.write(w.head, 0), w.undoTail(), w.sync()); undo != nil {
			report.Log(w.rep, "saw", fmt.Sprintf("the blank partition table could not be put back: %v", undo))
		}
		return err
	}
	w.done.BytesWritten += edge
	w.done.BytesVerified += min(edge, w.src.size)
	return nil
}

func (w *writer) write(p []byte, off int64) error {
	n, err := w.disk.WriteAt(p, off)
	return w.failed("written", off+int64(n), int64(len(p)-n), err)
}

func (w *writer) sync() error {
	w.dirty = 0
	if err := w.disk.Sync(); err != nil {
		return fault.Retry("%s did not take what was written: %w", w.name, err)
	}
	return nil
}

// failed is the error for I/O of n bytes that failed somewhere behind an offset.
func (w *writer) failed(what string, off, n int64, err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Transient, anotherDisk, "%s cannot be %s between byte %d (%s) and byte %d (%s): %w",
		w.name, what, off, inMiB(off), off+n, inMiB(off+n), err)
}

// anotherDisk is what a person can do about a disk that fails.
const anotherDisk = "the disk is failing: " + plan.FailingSystem

// inMiB is a number of bytes in MiB, the unit in which disks are written here.
func inMiB(n int64) string {
	return strconv.FormatFloat(float64(n)/mib, 'f', -1, 64) + " MiB"
}

func stopped(ctx context.Context) error {
	return fmt.Errorf("writing was stopped: %w", context.Cause(ctx))
}
