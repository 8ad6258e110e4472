package prep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
)

// What of a secondary disk is zeroed beside its tables and signatures, and
// why. Talos puts a user volume at the start of a blank disk; the filesystem
// of a layout from before the last one may begin right there, and no table
// shows it any more. So the first GiB is zeroed in any case. The rest, which
// may be terabytes, is discarded where that is cheap and left alone otherwise.
const (
	clearStart = 1 << 20 // what lies before is the table's
	clearAll   = 1 << 30
	clearStep  = 256 << 20
)

// clear zeroes the inside of a secondary disk.
func (e *executor) clear(ctx context.Context, disk host.Disk, d api.Disk) error {
	last := disk.Size() - clearStart
	end := min(clearStart+clearAll, last)
	if end <= clearStart {
		return nil // its two ends are all of it
	}
	meter := report.NewMeter(e.rep, "zero the secondary disk "+plan.Describe(d), end-clearStart)
	defer meter.End()
	method := host.Discard
	for off := int64(clearStart); off < end; off += clearStep {
		n := min(clearStep, end-off)
		how, err := disk.Zero(ctx, off, n)
		if err != nil {
			return err
		}
		if how != host.Discard {
			method = how
		}
		meter.Add(n)
	}
	if method != host.Discard {
		return nil
	}
	at, err := kept(ctx, disk, end)
	if err != nil {
		return err
	}
	if at < 0 {
		return host.DiscardRest(end, last, func(off, n int64) (string, error) { return disk.Zero(ctx, off, n) })
	}
	report.Log(e.rep, "saw", fmt.Sprintf("%s says that it discards and still holds data at byte %d: zeros are written instead", plan.Describe(d), at))
	return wipe(ctx, disk, []plan.Range{{Offset: clearStart, Length: end - clearStart}})
}

// lookBehind looks behind the blank tables of secondary disks: superblocks of
// an older layout may lie where the next one puts a partition.
func (e *executor) lookBehind(ctx context.Context, disks []api.Disk) error {
	for _, want := range e.spec.Secondary {
		d, err := plan.Resolve(disks, want)
		if err != nil || !plan.Empty(d) {
			continue // the plan says what is to do, or why not
		}
		e.rep.Progress(api.Progress{Step: "looking behind the blank table of " + plan.Describe(d)})
		at, err := e.residue(ctx, d)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(disks, func(x api.Disk) bool { return x.Name == d.Name })
		disks[i].Residue = at >= 0
	}
	return nil
}

// residue gives the first offset of a disk's start that holds data, or -1.
func (e *executor) residue(ctx context.Context, d api.Disk) (at int64, err error) {
	disk, err := e.host.OpenDisk(ctx, d.Name, false)
	if err != nil {
		return 0, fault.Retry("the disk %s cannot be read: %w", plan.Describe(d), err)
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	if at, err = kept(ctx, disk, min(clearStart+clearAll, disk.Size()-clearStart)); err != nil && ctx.Err() == nil {
		return 0, fault.Operator("the disk is failing: "+plan.FailingSecondary, "the disk %s cannot be read: %w", plan.Describe(d), err)
	}
	return at, err
}

// kept looks whether a disk reads as zeros where partitions start, up to an
// end. It gives the first offset that does not, or -1.
func kept(ctx context.Context, disk host.Disk, end int64) (int64, error) {
	return image.Residue(clearStart, end, func(p []byte, off int64) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := disk.ReadDirectAt(p, off)
		return err
	})
}
