package image_test

import (
	"bytes"
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
	r, err := image.Open(src, image.Options{Limit: limit})
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
