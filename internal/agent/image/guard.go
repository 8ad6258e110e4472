package image

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// The decoders take some cut files for whole ones: the zstd package drops up
// to three bytes behind the last frame, the xz package ends well where a file
// is cut between two blocks. The guards follow the framing themselves.

// zstdGuard follows the frames of a zstd file (RFC 8878, section 3.1).
type zstdGuard struct {
	r     io.Reader
	next  func([]byte) // takes the next header
	need  int          // bytes of that header
	head  []byte       // what is here of it
	skip  int64        // bytes to pass over before it
	sum   bool         // the frame ends with a checksum
	begun bool         // within a frame
	err   error
}

func isSkippable(p []byte) bool {
	return len(p) >= 4 && p[0]&0xf0 == 0x50 && string(p[1:4]) == "\x2a\x4d\x18"
}

// Read passes on what it reads, and an error where the framing is wrong.
func (g *zstdGuard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	g.feed(p[:n])
	if g.err != nil {
		return n, g.err
	}
	if err == io.EOF && g.whole() != nil { //nolint:errorlint // a reader's end is io.EOF itself
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// whole says what is wrong with a file that ends here.
func (g *zstdGuard) whole() error {
	if g.err == nil && (g.begun || g.skip > 0 || len(g.head) > 0) {
		return io.ErrUnexpectedEOF
	}
	return g.err
}

func (g *zstdGuard) feed(p []byte) {
	if g.next == nil {
		g.between()
	}
	for len(p) > 0 && g.err == nil {
		if g.skip > 0 {
			n := min(g.skip, int64(len(p)))
			p, g.skip = p[n:], g.skip-n
			continue
		}
		n := min(g.need-len(g.head), len(p))
		g.head = append(g.head, p[:n]...)
		p = p[n:]
		if len(g.head) == g.need {
			head := g.head
			g.head = g.head[:0]
			g.next(head)
		}
	}
}

func (g *zstdGuard) expect(n int, next func([]byte)) { g.need, g.next = n, next }

func (g *zstdGuard) between() {
	g.begun = false
	g.expect(4, g.magic)
}

func (g *zstdGuard) magic(p []byte) {
	g.begun = true
	switch {
	case string(p) == "\x28\xb5\x2f\xfd":
		g.expect(1, g.descriptor)
	case isSkippable(p):
		g.expect(4, g.skippable)
	default:
		g.err = corrupt("something else follows behind a zstd frame")
	}
}

func (g *zstdGuard) skippable(p []byte) {
	g.skip = int64(binary.LittleEndian.Uint32(p))
	g.between()
}

// descriptor passes over the rest of the frame's header.
func (g *zstdGuard) descriptor(p []byte) {
	single := p[0]&0x20 != 0
	g.sum = p[0]&0x04 != 0
	dictionary := [4]int64{0, 1, 2, 4}[p[0]&3]
	content := [4]int64{0, 2, 4, 8}[p[0]>>6]
	if single && content == 0 {
		content = 1
	}
	g.skip = dictionary + content
	if !single {
		g.skip++ // the window's descriptor
	}
	g.expect(3, g.block)
}

func (g *zstdGuard) block(p []byte) {
	head := int64(p[0]) | int64(p[1])<<8 | int64(p[2])<<16
	last, rle := head&1 != 0, head>>1&3 == 1
	g.skip = head >> 3
	if rle {
		g.skip = 1
	}
	if !last {
		return
	}
	if g.sum {
		g.skip += 4
	}
	g.between()
}

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
