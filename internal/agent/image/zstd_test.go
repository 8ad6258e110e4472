package image_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
)

// proven reads an image as it is read whose file has a digest, in chunks, and
// tells how many of its bytes were told as zeros.
func proven(src io.Reader, limit int64) (p []byte, zeros int64, err error) {
	r, err := image.Open(src, image.Options{Limit: limit, Proven: true})
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	a := r.Ahead(16<<10, 2)
	defer a.Close()
	for {
		data, hole, err := a.Next()
		if errors.Is(err, io.EOF) {
			return p, zeros, nil
		}
		if err != nil {
			return p, zeros, err
		}
		if hole%image.Block != 0 || hole > 0 && (len(p)+len(data))%image.Block != 0 {
			return p, zeros, errors.New("a hole that is no whole blocks")
		}
		p = append(append(p, data...), make([]byte, hole)...)
		zeros += hole
	}
}

// frame writes zstd frames block by block.
type frame struct {
	out     []byte
	content []byte
}

// The header is for a window of 1 KiB shifted by log, or for none at all.
func newFrame(log byte, content int, single bool) *frame {
	f := &frame{out: []byte("\x28\xb5\x2f\xfd")}
	switch {
	case single:
		f.out = binary.LittleEndian.AppendUint32(append(f.out, 0xa0), uint32(content))
	case content >= 0:
		f.out = binary.LittleEndian.AppendUint64(append(f.out, 0xc0, log<<3), uint64(content))
	default:
		f.out = append(f.out, 0, log<<3)
	}
	return f
}

func (f *frame) block(kind, size int, last bool, p ...byte) {
	head := size<<3 | kind<<1
	if last {
		head |= 1
	}
	f.out = append(append(f.out, byte(head), byte(head>>8), byte(head>>16)), p...)
}

func (f *frame) raw(p []byte, last bool) *frame {
	f.block(0, len(p), last, p...)
	f.content = append(f.content, p...)
	return f
}

func (f *frame) repeat(b byte, size int, last bool) *frame {
	f.block(1, size, last, b)
	f.content = append(f.content, bytes.Repeat([]byte{b}, size)...)
	return f
}

// same wants both ways of reading a file to end alike.
func same(t *testing.T, packed, raw []byte) int64 {
	t.Helper()
	if _, _, p, err := read(bytes.NewReader(packed), limit); err != nil || !bytes.Equal(p, raw) {
		t.Fatalf("with every zero: %d bytes of %d, %v", len(p), len(raw), err)
	}
	p, zeros, err := proven(bytes.NewReader(packed), limit)
	if err != nil || !bytes.Equal(p, raw) {
		t.Fatalf("with holes: %d bytes of %d, %v", len(p), len(raw), err)
	}
	r, err := image.Open(iotest.HalfReader(bytes.NewReader(packed)), image.Options{Limit: limit, Proven: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if p, err := io.ReadAll(r); err != nil || !bytes.Equal(p, raw) {
		t.Fatalf("read as a stream: %d bytes of %d, %v", len(p), len(raw), err)
	}
	return zeros
}

func TestZerosOfEncoders(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 8*mib, 512)
	copy(raw[6*mib+300:], raw[mib:mib+64<<10]) // what refers to far away, behind zeros
	for name, opts := range map[string][]zstd.EOption{
		"fastest": {zstd.WithEncoderLevel(zstd.SpeedFastest)},
		"best":    {zstd.WithEncoderLevel(zstd.SpeedBestCompression)},
		"window":  {zstd.WithWindowSize(64 << 10)}, // what it packs zeros into only the decoder knows
		"single":  {zstd.WithSingleSegment(true)},
		"no sum":  {zstd.WithEncoderCRC(false)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := zstd.NewWriter(nil, opts...)
			if err != nil {
				t.Fatal(err)
			}
			same(t, w.EncodeAll(raw, nil), raw)
		})
	}
}

// TestZerosByHand has blocks as no encoder makes them.
func TestZerosByHand(t *testing.T) {
	t.Parallel()
	head, rnd := small(t)[:4096], rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	zeros := func(f *frame, size, times int) *frame {
		for range times {
			f.repeat(0, size, false)
		}
		return f
	}
	tests := map[string]struct {
		frame *frame
		least int64 // bytes told as zeros
	}{
		"aligned":      {zeros(newFrame(5, -1, false).raw(head, false), 8192, 100).raw(noise[:4096], true), 700 << 10},
		"odd":          {zeros(newFrame(5, -1, false).raw(head, false).raw(noise, false), 1000, 500).raw(noise[:4096-5000%4096+192], true), 400 << 10},
		"tiny window":  {zeros(newFrame(0, -1, false).raw(head[:1024], false).repeat(0, 1000, false), 1024, 100).raw(noise[:24], true), 32 << 10},
		"at the end":   {zeros(newFrame(5, -1, false).raw(head, false), 8192, 100).repeat(0, 8192, true), 700 << 10},
		"other values": {zeros(newFrame(5, -1, false).raw(head, false).repeat(7, 4096, false), 8192, 100).repeat(7, 4096, true), 700 << 10},
		"interrupted":  {zeros(zeros(newFrame(5, -1, false).raw(head, false), 4096, 8).raw(noise[:4096], false), 4096, 8).raw(noise[:4096], true), 0},
		"single":       {zeros(newFrame(0, 4096+100*8192+4096, true).raw(head, false), 8192, 100).raw(noise[:4096], true), 0},
		"size told":    {zeros(newFrame(5, 4096+100*8192+4096, false).raw(head, false), 8192, 100).raw(noise[:4096], true), 700 << 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := tt.frame.content
			content = append(content, make([]byte, -len(content)&511)...)
			packed := tt.frame.out
			if pad := len(content) - len(tt.frame.content); pad > 0 { // another frame makes the sectors whole
				packed = append(packed, newFrame(0, -1, false).repeat(0, pad, true).out...)
			}
			got := same(t, packed, content)
			if got < tt.least {
				t.Errorf("%d bytes were told as zeros, at least %d should be", got, tt.least)
			}
			for n := 1; n < len(packed); n++ {
				if n > 60 && n < len(packed)-60 {
					n += 397 // within a block one byte is as good as the next
				}
				if _, _, err := proven(bytes.NewReader(packed[:n]), limit); err == nil && n != len(tt.frame.out) {
					t.Fatalf("cut at %d of %d: taken for a whole image", n, len(packed))
				}
			}
		})
	}
}

// TestZerosRefused: what leaving zeros out must not let through.
func TestZerosRefused(t *testing.T) {
	t.Parallel()
	head := small(t)[:4096]
	many := func(f *frame) *frame {
		for range 100 {
			f.repeat(0, 8192, false)
		}
		return f
	}
	reserved := many(newFrame(5, -1, false).raw(head, false))
	reserved.block(3, 10, true)
	for name, tt := range map[string]struct {
		packed []byte
		limit  int64
		kind   error
		text   string
	}{
		"too few":      {many(newFrame(5, 999_424, false).raw(head, false)).raw(head, true).out, limit, image.ErrCorrupt, "a zstd frame ends at byte 827392 of its content, and says that it ends at 999424"},
		"too many":     {many(newFrame(5, 500<<10, false).raw(head, false)).raw(head, true).out, limit, image.ErrCorrupt, "says that it ends at 512000"},
		"large block":  {newFrame(5, -1, false).raw(head, false).repeat(0, 32<<10, false).repeat(0, 64<<10, true).out, limit, image.ErrCorrupt, "broken"},
		"reserved":     {reserved.out, limit, image.ErrCorrupt, "broken"},
		"large window": {newFrame(18, -1, false).raw(head, true).out, limit, image.ErrTooLarge, "window of more than 128 MiB"},
		"all of it":    {newFrame(0, 200<<20, true).raw(head, true).out, limit, image.ErrTooLarge, "window of more than 128 MiB"},
		"limit":        {many(newFrame(5, -1, false).raw(head, false)).raw(head, true).out, 512 << 10, image.ErrTooLarge, "more than 524288 bytes"},
		"garbage":      {append(many(newFrame(5, -1, false).raw(head, false)).raw(head, true).out, "abc"...), limit, image.ErrCorrupt, "ends too early"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := proven(bytes.NewReader(tt.packed), tt.limit)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %q", err, tt.text)
			}
		})
	}
}
