// Package inventory reads what a machine is and what lies on its disks:
// topology from the kernel, partition tables and signatures from the disks
// themselves. It changes nothing.
package inventory

import (
	"context"
	"fmt"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/fault"
)

// Take takes the inventory of a machine. An error is Transient: a disk that
// cannot be read may answer the next time.
func Take(ctx context.Context, h host.Host) (api.Inventory, error) {
	inv, err := h.System(ctx)
	if err != nil {
		return api.Inventory{}, fault.Retry("the system's facts cannot be read: %w", err)
	}
	if inv.Disks, err = h.Topology(ctx); err != nil {
		return api.Inventory{}, fault.Retry("the list of disks cannot be read: %w", err)
	}
	for i := range inv.Disks {
		if err := ctx.Err(); err != nil {
			return api.Inventory{}, err
		}
		if err := Read(ctx, h, &inv.Disks[i]); err != nil {
			return api.Inventory{}, err
		}
	}
	return inv, nil
}

// Read fills in what lies on one disk. An error is Transient.
func Read(ctx context.Context, h host.Host, d *api.Disk) error {
	disk, err := h.OpenDisk(ctx, d.Name, false)
	if err != nil {
		return fault.Retry("disk %s cannot be opened to be read: %w", d.Name, err)
	}
	defer disk.Close()
	if err := read(disk, d); err != nil {
		return fault.Retry("disk %s cannot be read: %w", d.Name, err)
	}
	return nil
}

func read(disk host.Disk, d *api.Disk) error {
	direct := &directReader{disk: disk}
	memory := newEnds(disk.Size())
	whole, err := newArea(direct, 0, disk.Size(), memory)
	if err != nil {
		return err
	}
	table, err := readTable(direct, whole, disk.SectorSize())
	if err != nil {
		return err
	}
	d.Table, d.Blank = table.kind, table.blank
	d.Signatures = append(table.signatures, probe(whole)...)
	d.Parts = merge(d.Parts, table.parts)
	for i := range d.Parts {
		p := &d.Parts[i]
		// A damaged table may name anything.
		if p.Size == 0 || p.Offset+p.Size > uint64(disk.Size()) || p.Offset+p.Size < p.Offset {
			continue
		}
		area, err := newArea(direct, int64(p.Offset), int64(p.Size), memory)
		if err != nil {
			return fmt.Errorf("partition %d: %w", p.Number, err)
		}
		p.Signatures = probe(area)
	}
	return nil
}

// merge joins the kernel's partitions (names) with the table's (labels).
// Both count: the kernel may not have seen the newest table.
func merge(kernel, table []api.Partition) []api.Partition {
	out := append([]api.Partition(nil), table...)
next:
	for _, k := range kernel {
		for i := range out {
			if out[i].Number == k.Number && (k.Size == 0 || k.Offset == out[i].Offset) {
				out[i].Name = k.Name
				continue next
			}
		}
		out = append(out, k)
	}
	return out
}
