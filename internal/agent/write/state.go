package write

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/agent/state"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

const stateRemedy = "name an image that was made by Talos's image factory " + image.Another + "; `delivery: maintenance` needs none, and is given the same way"

// composed is the staged image with a STATE partition behind its last one, and
// with a partition table that speaks of the whole disk. It is written, read
// back and committed like an image that came so.
type composed struct {
	image io.ReaderAt
	fs    *state.Filesystem
	head  []byte // protective MBR, header and entries
	tail  []byte // the same table for the disk's end
	end   int64  // of the image's last partition; what follows is its backup table
	start int64  // of STATE
}

// compose adds STATE with the config to the staged image, for a disk of
// diskSize bytes. Errors are NeedsOperator and quote nothing of the config.
func (s *staged) compose(spec *api.StateSpec, diskSize int64, sector int) (*run.StatePartition, error) {
	fs, err := state.New(spec.Config)
	if err != nil {
		return nil, err
	}
	table, err := gpt.Parse(s.File, s.size, sector)
	if err != nil {
		return nil, fault.Operator(stateRemedy, "the staged image has no partition table that STATE could be added to: %w", err)
	}
	part, end, err := place(table)
	if err != nil {
		return nil, err
	}
	if last := diskSize - edge; part.Offset+part.Size > last {
		return nil, fault.Operator("it is too small: "+plan.AnotherDisk,
			"STATE ends at byte %d, and the disk has room for partitions up to byte %d", part.Offset+part.Size, last)
	}
	table.Partitions = append(table.Partitions, part)
	c := &composed{image: s.source, fs: fs, end: end, start: part.Offset}
	if c.head, c.tail, err = gpt.Encode(diskSize, sector, *table); err != nil {
		return nil, fault.Operator(stateRemedy, "STATE cannot be added to the image's partition table: %w", err)
	}
	if err := c.keepBootCode(); err != nil {
		return nil, s.lost(err)
	}
	s.source, s.tail, s.size = c, c.tail, part.Offset+part.Size
	s.data = c.extents(s.data)
	return &run.StatePartition{Partition: part.Number, Offset: part.Offset, Size: part.Size, ConfigBytes: len(spec.Config)}, nil
}

// place gives STATE the next number and the next whole MiB behind the last
// partition, which must be META: so Talos itself would do it.
func place(t *gpt.Table) (part gpt.Partition, end int64, err error) {
	var last gpt.Partition
	for _, p := range t.Partitions {
		if strings.EqualFold(p.Name, state.Label) {
			return part, 0, fault.Operator(stateRemedy, "the staged image has a partition %s of its own (number %d)", state.Label, p.Number)
		}
		if p.Offset+p.Size > end {
			last, end = p, p.Offset+p.Size
		}
		part.Number = max(part.Number, p.Number)
	}
	if last.Name != "META" || end <= edge {
		return part, 0, fault.Operator(stateRemedy, "the staged image's last partition is %q, and a Talos image ends with META", last.Name)
	}
	part = gpt.Partition{
		Number: part.Number + 1, Name: state.Label, Type: state.Type(), GUID: gpt.NewGUID(),
		Offset: (end + mib - 1) / mib * mib, Size: state.Size,
	}
	return part, end, nil
}

// keepBootCode takes over from the image's first sector what comes before the
// protective partition, and that partition's status byte, which old firmware
// wants to see as "active" (UEFI specification, tables 5.3 and 5.4).
func (c *composed) keepBootCode() error {
	const upToStatus = 447 // bytes
	_, err := c.image.ReadAt(c.head[:upToStatus], 0)
	return err
}

// extents lists where the composed image has data.
func (c *composed) extents(image []extent) []extent {
	all := []extent{{0, min(int64(edge), c.end)}}
	for _, e := range image {
		if e.start < c.end {
			all = append(all, extent{e.start, min(e.end, c.end)})
		}
	}
	for _, n := range c.fs.Blocks() {
		all = append(all, extent{c.start + n*state.BlockSize, c.start + (n+1)*state.BlockSize})
	}
	return tidy(all)
}

// tidy joins extents that touch or overlap.
func tidy(all []extent) []extent {
	slices.SortFunc(all, func(a, b extent) int { return int(min(max(a.start-b.start, -1), 1)) })
	out := all[:1]
	for _, e := range all[1:] {
		if last := &out[len(out)-1]; e.start <= last.end {
			last.end = max(last.end, e.end)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// ReadAt reads the composed image.
func (c *composed) ReadAt(p []byte, off int64) (int, error) {
	for n := 0; n < len(p); {
		at := off + int64(n)
		part, err := c.readPart(p[n:], at)
		n += part
		if err != nil {
			return n, err
		}
	}
	return len(p), nil
}

// readPart reads from one of the pieces: table, image, gap, filesystem.
func (c *composed) readPart(p []byte, at int64) (int, error) {
	upTo := func(end int64) []byte { return p[:min(int64(len(p)), end-at)] }
	switch headEnd := int64(len(c.head)); {
	case at < headEnd:
		return copy(p, c.head[at:]), nil
	case at < c.end:
		return io.ReadFull(io.NewSectionReader(c.image, at, c.end-at), upTo(c.end))
	case at < c.start:
		gap := upTo(c.start)
		clear(gap)
		return len(gap), nil
	default:
		return c.fs.ReadAt(p, at-c.start)
	}
}

// commitTail writes the table's second copy to the end of the disk and checks
// it. The first one still shows no partition, and firmware, kernel and Talos
// look at the second only where the first is damaged.
func (w *writer) commitTail() error {
	if w.src.tail == nil {
		return nil
	}
	end, at := w.edgeWith(w.src.tail), w.disk.Size()-edge
	got := make([]byte, edge)
	err := w.write(end, at)
	if err == nil {
		err = w.sync()
	}
	// A direct read is aligned, or reaches the end of the disk.
	skip := (image.Block - at%image.Block) % image.Block
	if err == nil {
		err = w.readBack(got[skip:], at+skip)
	}
	if err != nil {
		return err
	}
	if diff := firstDifference(end[skip:], got[skip:], at+skip); diff != nil {
		return w.differs(*diff)
	}
	w.done.BytesWritten += edge
	return nil
}

// undoTail puts the blank table back at the end of the disk.
func (w *writer) undoTail() error {
	if w.src.tail == nil {
		return nil
	}
	return w.write(w.tail, w.disk.Size()-edge)
}

// edgeWith is the disk's last MiB that ends with a table's copy.
func (w *writer) edgeWith(tail []byte) []byte {
	end := make([]byte, edge)
	copy(end[edge-len(tail):], tail)
	return end
}

// checkState reads the config back out of the filesystem on the disk.
func (w *writer) checkState(spec *api.StateSpec) error {
	if spec == nil {
		return nil
	}
	onDisk := io.NewSectionReader(aligned{w}, w.done.State.Offset, w.done.State.Size)
	got, err := state.Config(onDisk)
	if err != nil || string(got) != string(spec.Config) {
		return fault.Operator("`starter retry LOT NODE --from disk-prep`; if it happens again have the disk replaced",
			"%s does not give the machine config back out of STATE: %s", w.name, reason(err))
	}
	return nil
}

func reason(err error) string {
	if err == nil {
		return "it reads another one"
	}
	return fmt.Sprint(err)
}

// aligned reads any range past the cache.
type aligned struct{ w *writer }

// ReadAt reads the blocks around a range.
func (a aligned) ReadAt(p []byte, off int64) (int, error) {
	from := off / image.Block * image.Block
	to := min((off+int64(len(p))+image.Block-1)/image.Block*image.Block, a.w.disk.Size())
	blocks := make([]byte, to-from)
	if err := a.w.readBack(blocks, from); err != nil {
		return 0, err
	}
	return copy(p, blocks[off-from:]), nil
}
