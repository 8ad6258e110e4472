package image

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// The xz decoder ends well where a file is cut between two blocks.

// xzGuard keeps the end of an xz file: a whole one ends with a footer, which
// nothing but zeros may follow (xz file format 1.2.1, sections 2.1.2, 2.2).
type xzGuard struct {
	r     io.Reader
	tail  []byte // the last bytes before the zeros
	zeros int64
}

const xzFooter = 12

// Read passes on what it reads.
func (g *xzGuard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	g.keep(p[:n])
	return n, err
}

func (g *xzGuard) keep(p []byte) {
	last := len(p)
	for last > 0 && p[last-1] == 0 {
		last--
	}
	if last == 0 {
		g.zeros += int64(len(p))
		return
	}
	if last < xzFooter {
		g.tail = append(g.tail, make([]byte, min(g.zeros, xzFooter))...)
		g.tail = append(g.tail, p[:last]...)
	} else {
		g.tail = append(g.tail[:0], p[last-xzFooter:last]...)
	}
	g.tail = append(g.tail[:0], g.tail[max(0, len(g.tail)-xzFooter):]...)
	g.zeros = int64(len(p) - last)
}

// whole says what is wrong with a file that ends here.
func (g *xzGuard) whole() error {
	t := g.tail
	if len(t) < xzFooter || g.zeros%4 != 0 || string(t[10:]) != "YZ" ||
		crc32.ChecksumIEEE(t[4:10]) != binary.LittleEndian.Uint32(t) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// checkDictionary bounds the memory that an xz file asks for: the decoder
// trusts the size in the block's header (sections 3.1 and 5.3.1). LZMA2 is
// the only filter that it knows, so the first one is all there is to see.
func checkDictionary(head []byte) error {
	const header, most = 12, 30 // 30 stands for 128 MiB
	if len(head) < header+2 {
		return io.ErrUnexpectedEOF
	}
	flags, p := head[header+1], head[header+2:]
	for _, present := range []byte{0x40, 0x80} { // compressed, uncompressed size
		if flags&present != 0 {
			_, n := binary.Uvarint(p)
			p = p[max(n, 0):]
		}
	}
	if len(p) >= 3 && p[0] == 0x21 && p[2] > most {
		return tooLarge("the xz file needs a dictionary of more than %d MiB", maxWindow>>20)
	}
	return nil
}
