package image_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/fault"
)

const (
	mib   = 1 << 20
	limit = 64 << 30
)

// pack compresses p, in frames (members, streams) of at most each bytes.
func pack(t testing.TB, format image.Format, p []byte, each int) []byte {
	t.Helper()
	if format == image.Raw {
		return p
	}
	var out bytes.Buffer
	for len(p) > 0 {
		n := min(each, len(p))
		w, err := packer(format, &out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p[:n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		p = p[n:]
	}
	return out.Bytes()
}

func packer(format image.Format, w io.Writer) (io.WriteCloser, error) {
	switch format {
	case image.Zstd:
		return zstd.NewWriter(w)
	case image.XZ:
		// The default dictionary of 8 MiB makes the many small files slow.
		return xz.WriterConfig{DictCap: 1 << 16}.NewWriter(w)
	case image.Gzip:
		return gzip.NewWriter(w), nil
	}
	return nil, fmt.Errorf("no packer for %q", format)
}

// read reads a whole image.
func read(src io.Reader, limit int64) (image.Format, image.Layout, []byte, error) {
	r, err := image.Open(src, limit)
	if err != nil {
		return "", image.Layout{}, nil, err
	}
	defer r.Close()
	p, err := io.ReadAll(r)
	return r.Format(), r.Layout(), p, err
}

var formats = []image.Format{image.Raw, image.Zstd, image.XZ, image.Gzip}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		for sector, each := range map[int]int{512: 8 * mib, 4096: 3 * mib} {
			t.Run(fmt.Sprintf("%s in frames of %d", format, each), func(t *testing.T) {
				t.Parallel()
				raw := hosttest.Image(t, 8*mib, sector)
				got, layout, p, err := read(bytes.NewReader(pack(t, format, raw, each)), limit)
				if err != nil {
					t.Fatal(err)
				}
				if got != format || !bytes.Equal(p, raw) {
					t.Errorf("format %s, %d bytes, same as packed: %v", got, len(p), bytes.Equal(p, raw))
				}
				if want := (image.Layout{GPT: true, SectorSize: sector, MinSize: 8 * mib}); layout != want {
					t.Errorf("layout %+v, want %+v", layout, want)
				}
			})
		}
	}
}

// TestSmallReads has a source that gives a byte at a time.
func TestSmallReads(t *testing.T) {
	t.Parallel()
	raw := noisy(t)
	for _, format := range []image.Format{image.Zstd, image.XZ, image.Gzip} {
		got, layout, p, err := read(iotest.OneByteReader(bytes.NewReader(pack(t, format, raw, smallSize/2))), limit)
		if err != nil || got != format || !bytes.Equal(p, raw) || layout.MinSize != 65*512 {
			t.Errorf("%s: format %s, layout %+v, %d bytes, error %v", format, got, layout, len(p), err)
		}
	}
}

// smallSize is the size of a small image.
const smallSize = 128 << 10

// small is an image that packs to so few bytes that every cut can be tried.
func small(t testing.TB) []byte {
	t.Helper()
	raw := make([]byte, smallSize)
	mbr(raw, 0x83, 1, 64) // speaks of 65 sectors only
	copy(raw[700:], "some data to keep the packers busy")
	return raw
}

// noisy is a small image that does not pack well.
func noisy(t testing.TB) []byte {
	t.Helper()
	raw := small(t)
	copy(raw[smallSize/4:], hosttest.Image(t, 8*mib, 512)[mib+64<<10:][:smallSize/2])
	return raw
}

func mbr(p []byte, kind byte, start, length byte) {
	p[446+4], p[446+8], p[446+12] = kind, start, length
	p[510], p[511] = 0x55, 0xaa
}

func TestEveryCut(t *testing.T) {
	t.Parallel()
	raw := small(t)
	for _, format := range []image.Format{image.Zstd, image.XZ, image.Gzip} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			first := pack(t, format, raw[:smallSize/2], mib)
			whole := append(first[:len(first):len(first)], pack(t, format, raw[smallSize/2:], mib)...)
			for n := 1; n < len(whole); n++ {
				_, _, p, err := read(bytes.NewReader(whole[:n]), limit)
				if n == len(first) {
					// A cut between two frames is not to be seen, and this
					// image's table does not speak of the second half.
					if err != nil || len(p) != smallSize/2 {
						t.Errorf("first frame alone: %d bytes, %v", len(p), err)
					}
					continue
				}
				if err == nil {
					t.Fatalf("cut at %d of %d: taken for a whole image", n, len(whole))
				}
				if n > 8 && !errors.Is(err, image.ErrCorrupt) {
					t.Fatalf("cut at %d of %d: %v", n, len(whole), err)
				}
			}
		})
	}
}

// TestXZBlocks cuts a file of several blocks, which the decoder takes for
// whole between two of them.
func TestXZBlocks(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := xz.WriterConfig{BlockSize: smallSize / 4, DictCap: 1 << 16}.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(small(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := out.Bytes()
	if _, _, p, err := read(bytes.NewReader(whole), limit); err != nil || len(p) != smallSize {
		t.Fatalf("whole: %d bytes, %v", len(p), err)
	}
	for n := 1; n < len(whole); n++ {
		if _, _, _, err := read(bytes.NewReader(whole[:n]), limit); err == nil {
			t.Fatalf("cut at %d of %d: taken for a whole image", n, len(whole))
		}
	}
}

// TestPadding: zeros may follow an xz stream, in fours.
func TestPadding(t *testing.T) {
	t.Parallel()
	packed := pack(t, image.XZ, small(t), mib)
	for zeros := range 20 {
		_, _, _, err := read(bytes.NewReader(append(packed[:len(packed):len(packed)], make([]byte, zeros)...)), limit)
		if ok := err == nil; ok != (zeros%4 == 0) {
			t.Errorf("%d zeros behind the stream: %v", zeros, err)
		}
	}
}

// TestTableKnowsTheEnd has cuts that only the partition table shows.
func TestTableKnowsTheEnd(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 8*mib, 512)
	for _, format := range formats {
		cut := pack(t, format, raw[:mib], mib/2)
		if _, _, _, err := read(bytes.NewReader(cut), limit); !errors.Is(err, image.ErrCorrupt) || !strings.Contains(err.Error(), "speaks of 8388608") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestTrailingGarbage(t *testing.T) {
	t.Parallel()
	for _, format := range []image.Format{image.Zstd, image.XZ, image.Gzip} {
		packed := pack(t, format, small(t), mib)
		for _, garbage := range []string{"x", "ab", "abc", "abcd", "\x28", "\x28\xb5\x2f", "\xfd7zXZ", "\x1f", "\x1f\x8b\x08", "\r\n", strings.Repeat("garbage", 100)} {
			_, _, _, err := read(io.MultiReader(bytes.NewReader(packed), strings.NewReader(garbage)), limit)
			if !errors.Is(err, image.ErrCorrupt) {
				t.Errorf("%s with %.10q behind it: %v", format, garbage, err)
			}
		}
	}
}

func TestSkippableFrames(t *testing.T) {
	t.Parallel()
	skip := []byte("\x52\x2a\x4d\x18\x03\x00\x00\x00abc")
	packed := append(append(skip[:len(skip):len(skip)], pack(t, image.Zstd, small(t), smallSize/2)...), skip...)
	if _, _, p, err := read(bytes.NewReader(packed), limit); err != nil || !bytes.Equal(p, small(t)) {
		t.Fatalf("%d bytes, %v", len(p), err)
	}
	for n := 1; n < len(skip); n++ {
		if _, _, _, err := read(bytes.NewReader(packed[:len(packed)-n]), limit); !errors.Is(err, image.ErrCorrupt) {
			t.Errorf("last frame cut by %d: %v", n, err)
		}
	}
}

func TestFlippedBits(t *testing.T) {
	t.Parallel()
	raw := noisy(t)
	for _, format := range []image.Format{image.Zstd, image.XZ, image.Gzip} {
		packed := pack(t, format, raw, len(raw))
		for _, at := range []int{len(packed) / 3, len(packed) / 2, len(packed) - 2} {
			bad := bytes.Clone(packed)
			bad[at] ^= 0x10
			if _, _, p, err := read(bytes.NewReader(bad), limit); !errors.Is(err, image.ErrCorrupt) {
				t.Errorf("%s, byte %d flipped: %d bytes, %v", format, at, len(p), err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 8*mib, 512)
	at := func(off int, what string) []byte {
		p := bytes.Clone(raw) // with boot signature and GPT all the same
		copy(p[off:], what)
		return p
	}
	badSum, protective, noTable := bytes.Clone(raw), make([]byte, mib), make([]byte, mib)
	badSum[512+40] ^= 1
	mbr(protective, 0xee, 1, 255)
	mbr(noTable, 0, 0, 0)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "disk.raw"}), w.Close()); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		served []byte
		kind   error
		text   string
	}{
		"empty":          {nil, image.ErrNotImage, "it is empty"},
		"html":           {[]byte("\n<!DOCTYPE html>\n<html><body>404 \x3cb>not</b> found"), image.ErrNotImage, `an HTML page that starts with "<!DOCTYPE html> <html>`},
		"xml":            {[]byte("<?xml version='1.0'?><Error><Code>NoSuchKey"), image.ErrNotImage, "an XML document"},
		"json":           {[]byte(`{"error":"é denied"}`), image.ErrNotImage, `a JSON document that starts with "{\"error\":\"\u00e9 denied\"}"`},
		"text":           {[]byte("not found"), image.ErrNotImage, `it is text that starts with "not found"`},
		"escapes":        {[]byte("bad\x1b[31m page"), image.ErrNotImage, "it starts with the bytes 62 61 64 1b"},
		"zeros":          {make([]byte, mib), image.ErrNotImage, "starts with zeros"},
		"tar":            {archive.Bytes(), image.ErrNotImage, "a tar archive"},
		"zip":            {at(0, "PK\x03\x04"), image.ErrNotImage, "a zip archive"},
		"qcow2":          {at(0, "QFI\xfb"), image.ErrNotImage, "a qcow2 image"},
		"hybrid iso":     {at(32769, "CD001"), image.ErrNotImage, "an ISO image"},
		"uki":            {[]byte("MZ\x00\x01\x02"), image.ErrNotImage, "an EFI executable"},
		"protective mbr": {protective, image.ErrNotImage, "no GPT header behind it"},
		"no table":       {noTable, image.ErrNotImage, "no partition table"},
		"gpt checksum":   {badSum, image.ErrCorrupt, "wrong checksum"},
		"odd size":       {append(raw[:len(raw):len(raw)], 1, 2, 3), image.ErrCorrupt, "no multiple of 512"},
	}
	for _, outer := range []image.Format{image.Zstd, image.XZ, image.Gzip} {
		for _, inner := range []image.Format{image.Zstd, image.XZ, image.Gzip} {
			tests[fmt.Sprintf("%s in %s", inner, outer)] = struct {
				served []byte
				kind   error
				text   string
			}{pack(t, outer, pack(t, inner, small(t), mib), mib), image.ErrNotImage, fmt.Sprintf("a %s file inside a %s file", inner, outer)}
		}
		tests["tar in "+string(outer)] = struct {
			served []byte
			kind   error
			text   string
		}{pack(t, outer, archive.Bytes(), mib), image.ErrNotImage, "a tar archive"}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, _, err := read(bytes.NewReader(tt.served), limit)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("got %v, want %q", err, tt.text)
			}
			if e, ok := fault.As(err); !ok || e.Class != fault.NeedsOperator || e.Remedy == "" {
				t.Errorf("%v needs no operator", err)
			}
			if strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("unsafe text %q", err.Error())
			}
		})
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 8*mib, 512)
	if _, err := image.Open(bytes.NewReader(raw), 8*mib-1); !errors.Is(err, image.ErrTooLarge) {
		t.Errorf("the table speaks of too much: %v", err)
	}
	bomb := pack(t, image.Zstd, append(small(t), make([]byte, 64*mib)...), 128*mib)
	_, _, p, err := read(bytes.NewReader(bomb), 2*mib)
	if !errors.Is(err, image.ErrTooLarge) || len(p) > 3*mib {
		t.Errorf("a bomb of %d bytes: %d bytes read, %v", len(bomb), len(p), err)
	}
}

// TestDictionary has an xz file that asks for 4 GiB of memory.
func TestDictionary(t *testing.T) {
	t.Parallel()
	packed := pack(t, image.XZ, small(t), mib)
	i := bytes.Index(packed, []byte{0x21, 1})
	packed[i+2] = 40
	if _, err := image.Open(bytes.NewReader(packed), limit); !errors.Is(err, image.ErrTooLarge) {
		t.Error(err)
	}
}

// TestSourceError: what fails below the decoder comes out as it is.
func TestSourceError(t *testing.T) {
	t.Parallel()
	lost := fault.Retry("the network is gone")
	for _, format := range formats {
		packed := pack(t, format, noisy(t), smallSize/2)
		for _, n := range []int{0, 10, len(packed) / 2, len(packed)} {
			src := io.MultiReader(bytes.NewReader(packed[:n]), iotest.ErrReader(lost))
			if _, _, _, err := read(src, limit); !errors.Is(err, lost) {
				t.Errorf("%s after %d bytes: %v", format, n, err)
			}
		}
	}
}

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
