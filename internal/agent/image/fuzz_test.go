package image_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/fault"
)

func FuzzOpen(f *testing.F) {
	raw := small(f)
	for _, format := range formats {
		packed := pack(f, format, raw, 40<<10)
		f.Add(packed)
		f.Add(packed[:len(packed)/2])
		f.Add(packed[:len(packed)-1])
		f.Add(append(packed[:len(packed):len(packed)], "garbage"...))
		f.Add(pack(f, image.Gzip, packed, mib))
	}
	f.Add(hosttest.Image(f, 8*mib, 512)[:48<<10])
	f.Add(hosttest.Image(f, 8*mib, 4096)[:48<<10])
	f.Add([]byte("<html>"))
	f.Add(newFrame(2, -1, false).raw(raw[:4096], false).repeat(0, 4096, false).repeat(0, 4096, false).raw(raw[:4096], true).out)
	f.Fuzz(func(t *testing.T, served []byte) {
		format, layout, p, err := read(bytes.NewReader(served), 4*mib)
		if err != nil {
			if _, ok := fault.As(err); !ok {
				t.Fatalf("an error without a class: %v", err)
			}
			return
		}
		if int64(len(p)) < layout.MinSize || len(p)%512 != 0 || len(p) > 4*mib || p[510] != 0x55 || p[511] != 0xaa {
			t.Fatalf("%s of %d bytes with layout %+v taken for an image", format, len(p), layout)
		}
		if q, _, err := proven(bytes.NewReader(served), 4*mib); err != nil || !bytes.Equal(p, q) {
			t.Fatalf("%s of %d bytes; with holes %d, and not the same: %v", format, len(p), len(q), err)
		}
	})
}

// FuzzFormats packs any content and cuts it anywhere: only the whole file is
// an image.
func FuzzFormats(f *testing.F) {
	f.Add([]byte("data"), uint8(1), uint16(100), false)
	f.Add(bytes.Repeat([]byte("ab"), 3000), uint8(2), uint16(300), true)
	f.Add([]byte{}, uint8(3), uint16(0), true)
	f.Add(make([]byte, 9000), uint8(1), uint16(1), false)
	f.Fuzz(func(t *testing.T, data []byte, which uint8, cut uint16, frames bool) {
		raw := make([]byte, 32<<10)
		copy(raw[512:], data)
		clear(raw[512:520])
		mbr(raw, 0x83, 1, 63) // up to the last sector
		format, each := formats[which%4], len(raw)
		if frames {
			each = 20 << 10
		}
		packed := pack(t, format, raw, each)
		if _, _, p, err := read(bytes.NewReader(packed), limit); err != nil || sha256.Sum256(p) != sha256.Sum256(raw) {
			if errors.Is(err, image.ErrNotImage) || errors.Is(err, image.ErrCorrupt) && format == image.Raw {
				return // the data made it look like something else
			}
			t.Fatalf("whole %s: %d bytes, %v", format, len(p), err)
		}
		n := int(cut) % len(packed)
		if _, _, p, err := read(bytes.NewReader(packed[:n]), limit); err == nil {
			t.Fatalf("%s cut at %d of %d: taken for an image of %d bytes", format, n, len(packed), len(p))
		}
	})
}
