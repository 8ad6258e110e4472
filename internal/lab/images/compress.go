package images

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// Format is how an image is packed.
type Format string

// The formats that the server offers.
const (
	Raw  Format = "raw"
	Zstd Format = "zst"
	XZ   Format = "xz"
	Gzip Format = "gz"
)

// Formats lists all formats.
func Formats() []Format { return []Format{Raw, Zstd, XZ, Gzip} }

// FileName is what the image of that format is called on the server.
func (f Format) FileName() string {
	if f == Raw {
		return "metal-amd64.raw"
	}
	return "metal-amd64.raw." + string(f)
}

// Compress packs a raw image into a file.
func Compress(rawPath, path string, format Format) error {
	in, err := os.Open(rawPath)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pack(out, in, format); err != nil {
		out.Close()
		return fmt.Errorf("cannot pack %s as %s: %w", rawPath, format, err)
	}
	return out.Close()
}

func pack(out io.Writer, in io.Reader, format Format) error {
	packer, err := newPacker(out, format)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(packer, in, make([]byte, 1<<20)); err != nil {
		return err
	}
	return packer.Close()
}

func newPacker(out io.Writer, format Format) (io.WriteCloser, error) {
	switch format {
	case Zstd:
		return zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	case XZ:
		return xz.NewWriter(out)
	case Gzip:
		return gzip.NewWriterLevel(out, gzip.BestSpeed)
	default:
		return nil, fmt.Errorf("there is no packer for %q", format)
	}
}

// digest is the SHA-256 of a file, hex.
func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, f, make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
