// Package image reads disk images as they are served: raw or compressed, in
// the format that the first bytes tell, whole or not at all.
package image

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Format is how an image is served.
type Format string

// The formats.
const (
	Raw  Format = "raw"
	Zstd Format = "zstd"
	XZ   Format = "xz"
	Gzip Format = "gzip"
)

// HeadSize is how many bytes of a file Detect wants to see: an ISO 9660
// volume shows itself only in its sector 16. Fewer will do if there are no more.
const HeadSize = 64 << 10

// magic is what bytes at an offset say about a file.
type magic struct {
	off   int
	bytes string
	what  string
}

// foreign lists what is served by mistake and is no raw disk image. An ISO
// stands first: a hybrid one has a boot signature and a partition table too.
func foreign() []magic {
	return []magic{
		{32769, "CD001", "an ISO image (the metal-amd64.iso, not the raw disk image)"},
		{257, "ustar", "a tar archive"},
		{0, "PK\x03\x04", "a zip archive"},
		{0, "7z\xbc\xaf\x27\x1c", "a 7z archive"},
		{0, "QFI\xfb", "a qcow2 image"},
		{0, "KDMV", "a VMDK image"},
		{0, "vhdxfile", "a VHDX image"},
		{0, "conectix", "a VHD image"},
		{0, "hsqs", "a squashfs image"},
		{0, "BZh", "a bzip2 file"},
		{0, "LZIP", "an lzip file"},
		{0, "\x04\x22\x4d\x18", "an lz4 file"},
		{0, "\x5d\x00\x00", "an lzma file"},
		{0, "\x7fELF", "an ELF file"},
	}
}

// Detect tells the format of a file by its first HeadSize bytes, never by a
// name. What cannot be a disk image is ErrNotImage, and the error names it.
func Detect(head []byte) (Format, error) {
	switch {
	case hasAt(head, 0, "\x28\xb5\x2f\xfd"), isSkippable(head):
		return Zstd, nil
	case hasAt(head, 0, "\xfd7zXZ\x00"):
		return XZ, nil
	case hasAt(head, 0, "\x1f\x8b\x08"):
		return Gzip, nil
	}
	for _, m := range foreign() {
		if hasAt(head, m.off, m.bytes) {
			return "", notImage("it is %s", m.what)
		}
	}
	if hasAt(head, signatureOffset, bootSignature) {
		return Raw, nil
	}
	return "", notImage("%s", describe(head))
}

// describe says what bytes look like that are in no known format.
func describe(head []byte) string {
	if len(head) == 0 {
		return "it is empty"
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	switch {
	case hasAt(head, 0, "MZ"):
		return "it is an EFI executable (a UKI, not the raw disk image)"
	case len(bytes.Trim(head, "\x00")) == 0:
		return "it starts with zeros and has no boot signature"
	case !isText(text):
		return fmt.Sprintf("it starts with the bytes % x and has no boot signature", head[:min(len(head), 8)])
	}
	what := "text"
	switch lower := bytes.ToLower(text[:min(len(text), 512)]); {
	case bytes.Contains(lower, []byte("<html")), bytes.HasPrefix(lower, []byte("<!doctype html")):
		what = "an HTML page"
	case lower[0] == '<':
		what = "an XML document"
	case lower[0] == '{', lower[0] == '[':
		what = "a JSON document"
	}
	return fmt.Sprintf("it is %s that starts with %s", what, quote(text))
}

// quote shows the start of a text in one line of plain ASCII.
func quote(text []byte) string {
	const most = 80
	more := ""
	if len(text) > most {
		text, more = text[:most], "…"
	}
	return strconv.QuoteToASCII(string(bytes.Join(bytes.Fields(text), []byte(" ")))) + more
}

func isText(p []byte) bool {
	p = p[:min(len(p), 512)]
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		// The cut at 512 bytes may go through a rune.
		if r == utf8.RuneError && n == 1 && len(p) >= utf8.UTFMax || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return false
		}
		p = p[n:]
	}
	return true
}

func hasAt(p []byte, off int, want string) bool {
	return len(p) >= off+len(want) && string(p[off:off+len(want)]) == want
}
