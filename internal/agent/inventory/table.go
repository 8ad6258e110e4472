package inventory

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
)

// table is a disk's partition table.
type table struct {
	kind       string // gpt, dos or empty
	blank      bool
	parts      []api.Partition
	signatures []api.Signature
}

// readTable reads the GPT, else the MBR. A GPT made for the other sector
// size is only a signature: no system takes it for a table.
func readTable(r io.ReaderAt, a *area, sector int) (table, error) {
	t := table{signatures: tableSignatures(a)}
	found, err := gpt.Parse(r, a.size, sector)
	switch {
	case err == nil:
		t.kind = "gpt"
		t.blank = gpt.CheckBlank(r, a.size, sector) == nil
		for _, p := range found.Partitions {
			t.parts = append(t.parts, api.Partition{Number: p.Number, Label: p.Name, Offset: uint64(p.Offset), Size: uint64(p.Size)})
		}
	case errors.Is(err, gpt.ErrNone) || errors.Is(err, gpt.ErrDamaged) || errors.Is(err, gpt.ErrGeometry):
		if t.parts = dos(r, a, sector); t.parts != nil {
			t.kind = "dos"
			t.signatures = append(t.signatures, api.Signature{Type: "dos", Offset: 0x1fe})
		}
	default:
		return table{}, err
	}
	return t, nil
}

// tableSignatures finds GPT headers of both sector sizes at both ends, and
// the protective MBR.
func tableSignatures(a *area) []api.Signature {
	var out []api.Signature
	for _, off := range []int64{512, 4096, a.size - 4096, a.size - 512} {
		if a.has(off, "EFI PART") {
			out = append(out, api.Signature{Type: "gpt", Offset: uint64(off)})
		}
	}
	if mbr := a.at(0, 512); hasBootSignature(mbr) && mbr[446+4] == 0xee {
		out = append(out, api.Signature{Type: "PMBR", Offset: 0x1fe})
	}
	return out
}

func hasBootSignature(mbr []byte) bool {
	return mbr != nil && mbr[510] == 0x55 && mbr[511] == 0xaa
}

// maxLogical bounds the chain of extended partitions, which may run in
// circles.
const maxLogical = 60

// dos reads an MBR with its logical partitions; nil means that there is none.
// A FAT or NTFS boot sector has the same signature: its bytes are no table
// unless each entry makes sense.
func dos(r io.ReaderAt, a *area, sector int) []api.Partition {
	mbr := a.at(0, 512)
	if !hasBootSignature(mbr) {
		return nil
	}
	var out, logical []api.Partition
	for i := range 4 {
		e := mbr[446+16*i:][:16]
		if e[0]&0x7f != 0 {
			return nil
		}
		start, size := entry(e, sector)
		switch kind := e[4]; {
		case kind == 0 || size == 0:
		case start == 0 || start+size > a.size:
			return nil
		case kind == 0x05 || kind == 0x0f || kind == 0x85:
			logical = append(logical, chain(r, start, a.size, sector)...)
			fallthrough
		default:
			out = append(out, api.Partition{Number: i + 1, Offset: uint64(start), Size: uint64(size)})
		}
	}
	for i := range logical {
		logical[i].Number = 5 + i
	}
	return append(out, logical...)
}

func entry(e []byte, sector int) (start, size int64) {
	return int64(binary.LittleEndian.Uint32(e[8:])) * int64(sector), int64(binary.LittleEndian.Uint32(e[12:])) * int64(sector)
}

// chain follows the extended boot records: each names a logical partition,
// relative to itself, and the next record, relative to the first.
func chain(r io.ReaderAt, first, diskSize int64, sector int) []api.Partition {
	var out []api.Partition
	record := make([]byte, 512)
	for at := first; len(out) < maxLogical; {
		if full(r, record, at) != nil || !hasBootSignature(record) {
			return out
		}
		start, size := entry(record[446:], sector)
		if size == 0 || at+start+size > diskSize {
			return out
		}
		out = append(out, api.Partition{Offset: uint64(at + start), Size: uint64(size)})
		next, length := entry(record[462:], sector)
		if next == 0 || length == 0 {
			return out
		}
		at = first + next
	}
	return out
}
