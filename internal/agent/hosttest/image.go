package hosttest

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ironlot/ironlot/internal/agent/gpt"
)

// Image makes a raw disk image that looks like one of Talos: a GPT with EFI,
// BIOS, BOOT and META, some data in each, and zeros for the most part. The
// size is a multiple of a MiB and at least 8 MiB. The same arguments make the
// same image.
func Image(t testing.TB, size int64, sectorSize int) []byte {
	t.Helper()
	p := make([]byte, size)
	for off, data := range ImageParts(t, size, sectorSize) {
		copy(p[off:], data)
	}
	return p
}

// ImageParts is Image as its data by offset, for images that are too large
// for memory.
func ImageParts(t testing.TB, size int64, sectorSize int) map[int64][]byte {
	t.Helper()
	const mib = 1 << 20
	unit := size / mib / 8
	parts := map[int64][]byte{}
	random := rand.NewChaCha8([32]byte{1})
	guid := func() (g gpt.GUID) {
		_, _ = random.Read(g[:]) // never fails
		return g
	}
	table := gpt.Table{DiskGUID: guid()}
	for i, name := range []string{"EFI", "BIOS", "BOOT", "META"} {
		off := mib + int64(i)*unit*mib
		table.Partitions = append(table.Partitions, gpt.Partition{
			Number: i + 1, Name: name, Type: guid(), GUID: guid(), Offset: off, Size: unit * mib,
		})
		data := make([]byte, 300<<10+i*4096+512)
		_, _ = random.Read(data) // never fails
		clear(data[8192 : 8192+40<<10])
		parts[off] = data
	}
	head, tail, err := gpt.Encode(size, sectorSize, table)
	if err != nil {
		t.Fatal(err)
	}
	copy(head[:440], "boot code that is not zeros")
	parts[0], parts[size-int64(len(tail))] = head, tail
	return parts
}

// ImageZstd is Image with sectors of 512 bytes as a zstd file. The raw image
// never lies in memory, so that it may be as large as that of Talos.
func ImageZstd(t testing.TB, size int64) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	write := func(p []byte) {
		n, err := w.Write(p)
		if err != nil {
			t.Fatal(err)
		}
		at += int64(n)
	}
	zeros := make([]byte, 1<<20)
	fill := func(to int64) {
		for at < to {
			write(zeros[:min(to-at, int64(len(zeros)))])
		}
	}
	parts := ImageParts(t, size, 512)
	for _, off := range slices.Sorted(maps.Keys(parts)) {
		fill(off)
		write(parts[off])
	}
	fill(size)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
