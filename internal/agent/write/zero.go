package write

import (
	"context"
	"fmt"

	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
)

// What is zeroed, and why. The image's own range must read as zeros where the
// image has holes. Behind it Talos makes STATE and EPHEMERAL on its first
// boot, where an earlier Talos had them: what starts there must not be found
// again. So margin bytes behind the image are zeroed in any case, and the
// last MiB with the blank GPT's backup. The rest, which may be terabytes, is
// discarded where that is cheap, and left alone where zeros would have to be
// written: no partition of the new system starts there, and what the old
// table showed there was cleared when the disk was prepared.
const (
	margin   = 1 << 30
	zeroStep = 256 * mib
)

// zeroEnd is the end of what is zeroed at any price.
func (w *writer) zeroEnd() int64 {
	return min(max(w.src.size, edge)+margin, w.disk.Size()-edge)
}

// zero makes the disk read as zeros between its ends, as far as is needed.
func (w *writer) zero(ctx context.Context) error {
	last := w.disk.Size() - edge
	end := w.zeroEnd()
	meter := report.NewMeter(w.rep, "zero the disk", end-edge)
	defer meter.End()
	for off := int64(edge); off < end; off += zeroStep {
		n := min(zeroStep, end-off)
		method, err := w.zeroRange(ctx, off, n)
		if err != nil {
			return err
		}
		w.done.ZeroMethod = weaker(w.done.ZeroMethod, method)
		meter.Add(n)
	}
	if w.done.ZeroMethod != host.Discard {
		return nil
	}
	if err := w.checkDiscard(ctx, end, meter); err != nil || w.done.ZeroMethod != host.Discard {
		return err
	}
	return host.DiscardRest(end, last, func(off, n int64) (string, error) { return w.zeroRange(ctx, off, n) })
}

func (w *writer) zeroRange(ctx context.Context, off, n int64) (string, error) {
	if ctx.Err() != nil {
		return "", stopped(ctx)
	}
	method, err := w.disk.Zero(ctx, off, n)
	if err != nil {
		if ctx.Err() != nil {
			return "", stopped(ctx)
		}
		return "", w.failed("zeroed", off, n, err)
	}
	w.done.BytesZeroed += n
	return method, nil
}

// weaker gives the method that relies less on the device.
func weaker(a, b string) string {
	if a == "" || a == host.Discard || b == host.Written {
		return b
	}
	return a
}

// checkDiscard looks whether discarded blocks behind the image read as zeros
// where signatures lie: at the start of each MiB, where partitions start. A
// device that keeps the old data gets zeros written. The image's own range is
// compared as a whole later on.
func (w *writer) checkDiscard(ctx context.Context, end int64, meter *report.Meter) error {
	from := max((w.src.size+mib-1)/mib*mib, edge)
	at, err := image.Residue(from, end, func(p []byte, off int64) error {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		return w.readBack(p, off)
	})
	if err != nil || at < 0 {
		return err
	}
	report.Log(w.rep, "saw", fmt.Sprintf("%s says that it discards and still holds data at byte %d: zeros are written instead", w.name, at))
	meter.Set(0)
	w.done.BytesZeroed = 0
	return w.writeZeros(ctx, edge, end, meter)
}

func (w *writer) writeZeros(ctx context.Context, from, end int64, meter *report.Meter) error {
	zeros := make([]byte, chunkSize)
	w.done.ZeroMethod = host.Written
	for off := from; off < end; off += chunkSize {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		n := min(chunkSize, end-off)
		if err := w.write(zeros[:n], off); err != nil {
			return err
		}
		w.done.BytesZeroed += n
		meter.Add(n)
		if (off-from+n)%syncStep == 0 {
			if err := w.sync(); err != nil {
				return err
			}
		}
	}
	return w.sync()
}
