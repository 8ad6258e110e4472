package prep

import (
	"context"
	"errors"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// heldDisks are disks opened exclusively: as long as they are, the kernel
// lets nobody mount, assemble or partition them.
type heldDisks struct {
	host  host.Host
	names []string
	disks []host.Disk
}

// open finds a disk by identity and takes it, once.
func (o *heldDisks) open(ctx context.Context, want run.Disk) error {
	d, err := o.resolve(ctx, want)
	if err != nil {
		return err
	}
	if o.named(d.Name) != nil {
		return nil
	}
	disk, err := o.host.OpenDisk(ctx, d.Name, true)
	if err != nil {
		return fault.Operator("look on the machine at what uses it", "the disk %s cannot be taken exclusively: %w", plan.Describe(d), err)
	}
	o.names, o.disks = append(o.names, d.Name), append(o.disks, disk)
	return nil
}

// again finds a disk by identity right before it is written, and gives the
// open one if it still is that one.
func (o *heldDisks) again(ctx context.Context, want run.Disk) (host.Disk, error) {
	d, err := o.resolve(ctx, want)
	if err != nil {
		return nil, err
	}
	disk := o.named(d.Name)
	if disk == nil || disk.Size() != int64(d.Size) {
		return nil, fault.Retry("the disk %s changed its name while it was held", plan.Describe(d))
	}
	return disk, nil
}

func (o *heldDisks) resolve(ctx context.Context, want run.Disk) (api.Disk, error) {
	if err := ctx.Err(); err != nil {
		return api.Disk{}, err
	}
	disks, err := o.host.Topology(ctx)
	if err != nil {
		return api.Disk{}, fault.Retry("the list of disks cannot be read: %w", err)
	}
	return plan.Resolve(disks, want)
}

func (o *heldDisks) named(name string) host.Disk {
	for i, n := range o.names {
		if n == name {
			return o.disks[i]
		}
	}
	return nil
}

// reread has the kernel see the new tables.
func (o *heldDisks) reread() error {
	for i, disk := range o.disks {
		if err := disk.Reread(); err != nil {
			return fault.Operator("look on the machine at what keeps a partition open", "the kernel cannot read the partition table of %s again: %w", o.names[i], err)
		}
	}
	return nil
}

func (o *heldDisks) close() error {
	var errs []error
	for _, disk := range o.disks {
		errs = append(errs, disk.Close())
	}
	return errors.Join(errs...)
}

// chunk is how much is written between two looks at the context.
const chunk = 1 << 20

// wipe writes zeros, from the end of the disk to its start: what says where
// the rest lies (extended boot records) goes last.
func wipe(ctx context.Context, disk host.Disk, ranges []plan.Range) error {
	zeros := make([]byte, chunk)
	for i := len(ranges) - 1; i >= 0; i-- {
		r := ranges[i]
		for done := int64(0); done < r.Length; done += chunk {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(chunk, r.Length-done)
			if _, err := disk.WriteAt(zeros[:n], r.Offset+done); err != nil {
				return err
			}
		}
	}
	return disk.Sync()
}

// blank clears both ends of a disk and writes the blank table, its start
// last: sector 0 goes from one boot signature to the next in one write.
func blank(ctx context.Context, disk host.Disk, ranges []plan.Range) error {
	head, tail, err := gpt.Blank(disk.Size(), disk.SectorSize())
	if err != nil {
		return err
	}
	if err := wipe(ctx, disk, ranges); err != nil {
		return err
	}
	if _, err := disk.WriteAt(tail, disk.Size()-int64(len(tail))); err != nil {
		return err
	}
	if err := disk.Sync(); err != nil {
		return err
	}
	if _, err := disk.WriteAt(head, 0); err != nil {
		return err
	}
	return disk.Sync()
}

func logEntry(event, text string) api.LogEntry {
	return api.LogEntry{At: time.Now().UTC(), Event: event, Text: text}
}
