package image_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/image"
)

// defined is the data digest as the documentation defines it.
func defined(raw []byte) string {
	var all bytes.Buffer
	all.WriteString("ironlot data 1\n")
	number := func(n int) { _ = binary.Write(&all, binary.BigEndian, int64(n)) } // a buffer takes it
	for off := 0; off < len(raw); off += image.Block {
		if block := raw[off:min(off+image.Block, len(raw))]; bytes.ContainsFunc(block, func(r rune) bool { return r != 0 }) {
			number(off)
			all.Write(block)
		}
	}
	number(len(raw))
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:])
}

// TestDataDigest: it follows its definition, in pieces of any size and with
// zeros left out, and any difference of two images is one of theirs.
func TestDataDigest(t *testing.T) {
	t.Parallel()
	const b = image.Block
	raw := make([]byte, 20*b+512)
	for _, at := range []int{0, 2*b + 7, 3 * b, 9*b + 4095, 20 * b} {
		raw[at] = byte(at>>8 + 1)
	}
	of := func(raw []byte, piece int) string {
		d := image.NewDataDigest()
		for off := 0; off < len(raw); off += piece {
			if p := raw[off:min(off+piece, len(raw))]; !image.IsZero(p) || off%2 == piece%2 {
				d.Add(p, int64(off))
			}
		}
		return d.Sum(int64(len(raw)))
	}
	want := defined(raw)
	for _, piece := range []int{b, 3 * b, 100 * b} {
		if got := of(raw, piece); got != want {
			t.Errorf("in pieces of %d: %s, want %s", piece, got, want)
		}
	}
	moved := bytes.Clone(raw)
	copy(moved[4*b:], raw[3*b:4*b])
	clear(moved[3*b : 4*b])
	flipped := bytes.Clone(raw)
	flipped[15*b] = 1
	for name, other := range map[string][]byte{"shorter": raw[:20*b], "longer": append(bytes.Clone(raw), make([]byte, b)...), "moved": moved, "flipped": flipped} {
		if got := of(other, b); got == want || got != defined(other) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
