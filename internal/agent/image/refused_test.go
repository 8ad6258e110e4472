package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/fault"
)

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
	if _, err := image.Open(bytes.NewReader(raw), image.Options{Limit: 8*mib - 1}); !errors.Is(err, image.ErrTooLarge) {
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
	if _, err := image.Open(bytes.NewReader(packed), image.Options{Limit: limit}); !errors.Is(err, image.ErrTooLarge) {
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
