// Package images makes disk images that are laid out like Talos and serves
// them over HTTP, with the faults that image servers have. Nothing in such
// an image can boot on a real machine.
package images

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// FullSize is the size of the amd64 image of Talos 1.13, in bytes.
const FullSize = 4247 * layout.MiB

// minSize leaves each partition of the layout at least one MiB.
const minSize = 8 * layout.MiB

// Spec says what image to make.
type Spec struct {
	Size int64  // bytes, at least 8 MiB and a whole number of MiB
	Data int64  // bytes that are not zero; 0 means an eighth of Size
	Seed uint64 // equal seeds make equal images
}

// Check refuses an image that cannot be made.
func (s Spec) Check() error {
	switch {
	case s.Size < minSize || s.Size%layout.MiB != 0:
		return fault.Operator(fmt.Sprintf("use a whole number of MiB, at least %d", minSize/layout.MiB),
			"an image of %d bytes cannot be made", s.Size)
	case s.Data < 0 || s.Data > s.Size:
		return fault.Operator("use no more than its size", "an image of %d bytes cannot hold %d bytes of data", s.Size, s.Data)
	}
	return nil
}

// Build writes the image as a sparse file; a file that is there is replaced.
func Build(path string, spec Spec) error {
	if err := spec.Check(); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := build(f, spec); err != nil {
		f.Close()
		return fmt.Errorf("cannot build the image %s: %w", path, err)
	}
	return f.Close()
}

func build(f *os.File, spec Spec) error {
	if err := f.Truncate(spec.Size); err != nil {
		return err
	}
	if err := layout.Create(f, spec.Size, "talos image", talosParts(spec.Size)); err != nil {
		return err
	}
	data := spec.Data
	if data == 0 {
		data = spec.Size / 8
	}
	parts := layout.Read(f, spec.Size)
	efi, _ := layout.Find(parts, layout.EFI)
	boot, _ := layout.Find(parts, layout.Boot)
	random := rand.NewChaCha8(seed(spec.Seed))
	for _, p := range []layout.Part{efi, boot} {
		n := min(data/2, p.Size)
		if _, err := io.CopyN(io.NewOffsetWriter(f, p.Offset), random, n); err != nil {
			return err
		}
	}
	return writeMagics(f, efi, boot)
}

// talosParts is the layout of the real image, or the same in small.
func talosParts(size int64) []layout.Part {
	efi, boot := int64(2101*layout.MiB), int64(2000*layout.MiB)
	if size < FullSize {
		const others = 4 * layout.MiB // head, BIOS, META, tail
		left := (size - others) / layout.MiB
		efi = (left/2 + left%2) * layout.MiB
		boot = left / 2 * layout.MiB
	}
	return []layout.Part{
		{Name: layout.EFI, Type: layout.TypeEFI, Size: efi},
		{Name: layout.BIOS, Type: layout.TypeBIOS, Size: layout.MiB},
		{Name: layout.Boot, Type: layout.TypeLinux, Size: boot},
		{Name: layout.Meta, Type: layout.TypeLinux, Size: layout.MiB},
	}
}

// writeMagics makes the partitions look like vfat and xfs to a prober.
func writeMagics(f *os.File, efi, boot layout.Part) error {
	vfat := make([]byte, layout.SectorSize)
	copy(vfat, "\xeb\x58\x90MSDOS5.0")
	binary.LittleEndian.PutUint16(vfat[11:], layout.SectorSize)
	vfat[13] = 1                                 // sectors per cluster
	binary.LittleEndian.PutUint16(vfat[14:], 32) // reserved sectors
	vfat[16] = 2                                 // tables
	copy(vfat[71:], "EFI        FAT32   ")
	copy(vfat[510:], "\x55\xaa")
	if _, err := f.WriteAt(vfat, efi.Offset); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte("XFSB\x00\x00\x10\x00"), boot.Offset)
	return err
}

func seed(n uint64) (s [32]byte) {
	binary.LittleEndian.PutUint64(s[:], n)
	return s
}
