package write

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// minDisk is the smallest disk that is written, in bytes: below it the two
// ends that are dealt with apart would meet.
const minDisk = 8 * mib

const prepAgain = "release it with `starter retry LOT NODE --from disk-prep`"

// findTarget finds the disk by identity on this boot and refuses it where it
// cannot take the image.
func findTarget(ctx context.Context, h host.Host, want run.Disk, src *staged) (api.Disk, error) {
	disks, err := h.Topology(ctx)
	if err != nil {
		return api.Disk{}, fault.Retry("the machine's disks cannot be listed: %w", err)
	}
	d, err := plan.Resolve(disks, want)
	if err != nil {
		return api.Disk{}, err
	}
	return d, refuse(d, src)
}

func refuse(d api.Disk, src *staged) error {
	name := fmt.Sprintf("disk %s (serial %s)", d.Name, d.Serial)
	switch {
	case len(d.Holders) > 0:
		return fault.Operator(prepAgain, "%s is in use by %s", name, holders(d.Holders))
	case d.Size < minDisk || d.Size < uint64(src.size):
		return fault.Operator("it is too small: "+plan.AnotherDisk, "%s has %d bytes and the image needs %d", name, d.Size, max(src.size, minDisk))
	case d.SectorSize != src.layout.SectorSize:
		return fault.Operator("name an image with the disk's sector size "+image.Another+"; or "+plan.AnotherDisk,
			"%s has sectors of %d bytes and the image's partition table counts in sectors of %d bytes, so no firmware would find it there",
			name, d.SectorSize, src.layout.SectorSize)
	case src.size%int64(d.SectorSize) != 0:
		return fault.Operator("name an image that was made for such disks "+image.Another, "%s has sectors of %d bytes and the image's %d bytes are no multiple of that", name, d.SectorSize, src.size)
	}
	return nil
}

func holders(all []api.Holder) string {
	var names []string
	for _, x := range all {
		names = append(names, fmt.Sprintf("%s %s (on %s)", x.Kind, x.Name, x.Device))
	}
	return strings.Join(names, ", ")
}

// openTarget opens the disk to write, exclusively, and makes sure that it is
// still the one that was found.
func openTarget(ctx context.Context, h host.Host, d api.Disk) (host.Disk, error) {
	disk, err := h.OpenDisk(ctx, d.Name, true)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return nil, fault.Operator(prepAgain, "disk %s (serial %s) is in use: %w", d.Name, d.Serial, err)
	case err != nil:
		return nil, fault.Retry("disk %s (serial %s) cannot be opened: %w", d.Name, d.Serial, err)
	case disk.Size() != int64(d.Size) || disk.SectorSize() != d.SectorSize:
		_ = disk.Close() // nothing was written to it
		return nil, fault.Retry("disk %s is another one than a moment ago: it has %d bytes in sectors of %d, and %d in sectors of %d were seen",
			d.Name, disk.Size(), disk.SectorSize(), d.Size, d.SectorSize)
	}
	return disk, nil
}
