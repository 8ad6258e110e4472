package plan

import (
	"cmp"
	"slices"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// page is the alignment of what is written; both sector sizes divide it.
const page = 4096

// ends are the two edges of a range, or all of a short one.
func ends(offset, size int64) []Range {
	if size <= 2*edge {
		return []Range{{offset, size}}
	}
	return []Range{{offset, edge}, {offset + size - edge, edge}}
}

// around is the page that holds a signature, and the next for one that
// reaches over its end.
func around(offset int64) Range { return Range{offset &^ (page - 1), 2 * page} }

// tidy sorts and joins ranges, and cuts them to the disk without what the
// blank table itself will overwrite: so sector 0 is never zeroed and the disk
// has a boot signature at every moment.
func tidy(ranges []Range, d api.Disk) []Range {
	head, tail := tableSpace(d)
	var out []Range
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, r := range ranges {
		start, end := max(r.Offset, head), min(r.Offset+r.Length, int64(d.Size)-tail)
		if start >= end {
			continue
		}
		if last := len(out) - 1; last >= 0 && start <= out[last].Offset+out[last].Length {
			out[last].Length = max(out[last].Length, end-out[last].Offset)
			continue
		}
		out = append(out, Range{start, end - start})
	}
	return out
}

// tableSpace is what a blank GPT takes at both ends: MBR, header and 16 KiB
// of entries; entries and header.
func tableSpace(d api.Disk) (head, tail int64) {
	const entries = 16 << 10
	sector := int64(d.SectorSize)
	return 2*sector + entries, sector + entries
}
