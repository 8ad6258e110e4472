package image

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"slices"
)

// zstdFrames passes a zstd file on to the decoder frame by frame, block by
// block (RFC 8878, section 3.1), and says where the framing is wrong: the
// decoder drops up to three bytes behind the last frame.
type zstdFrames struct {
	in    io.Reader
	next  func() error // takes the next header
	give  []byte       // what the decoder gets next
	pass  int64        // bytes of a block behind it
	begun bool         // within a frame
	sum   bool         // the frame ends with a checksum
	err   error
	saver *zeroSaver // nil where every block goes to the decoder
}

func newZstdFrames(in io.Reader, saver *zeroSaver) *zstdFrames {
	z := &zstdFrames{in: in, saver: saver}
	z.next = z.magic
	return z
}

// Read gives at most what belongs to one block.
func (z *zstdFrames) Read(p []byte) (int, error) {
	for len(p) > 0 {
		switch {
		case len(z.give) > 0:
			n := copy(p, z.give)
			z.give = z.give[n:]
			return n, nil
		case z.pass > 0:
			n, err := z.in.Read(p[:min(int64(len(p)), z.pass)])
			z.pass -= int64(n)
			if z.pass > 0 {
				err = early(err)
			} else if errors.Is(err, io.EOF) {
				err = nil // the next header will see it
			}
			return n, err
		case z.err != nil:
			return 0, z.err
		default:
			if z.err = z.next(); z.err != nil {
				z.give = nil
			}
		}
	}
	return 0, nil
}

// whole says what is wrong with a file that ends here.
func (z *zstdFrames) whole() error {
	if z.err != nil && !errors.Is(z.err, io.EOF) {
		return z.err
	}
	if z.begun || z.pass > 0 || len(z.give) > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// early is the error of a source that ends within something.
func early(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// take reads n more bytes of a header behind what is to be given.
func (z *zstdFrames) take(n int) ([]byte, error) {
	at := len(z.give)
	z.give = append(z.give, make([]byte, n)...)
	if _, err := io.ReadFull(z.in, z.give[at:]); err != nil {
		return nil, err
	}
	return z.give[at:], nil
}

func isSkippable(p []byte) bool {
	return len(p) >= 4 && p[0]&0xf0 == 0x50 && string(p[1:4]) == "\x2a\x4d\x18"
}

// magic is between two frames, where the file may end.
func (z *zstdFrames) magic() error {
	z.give = z.give[:0]
	if z.begun {
		if err := z.saver.endFrame(); err != nil {
			return err
		}
	}
	z.begun = false
	p, err := z.take(4)
	if err != nil {
		return err
	}
	switch {
	case string(p) == "\x28\xb5\x2f\xfd":
		z.next = z.header
		z.begun = true
		return z.header()
	case isSkippable(p):
		size, err := z.take(4)
		if err != nil {
			return early(err)
		}
		z.pass = int64(binary.LittleEndian.Uint32(size))
		return nil
	}
	return corrupt("something else follows behind a zstd frame")
}

// header takes the rest of a frame's header (section 3.1.1.1).
func (z *zstdFrames) header() error {
	p, err := z.take(1)
	if err != nil {
		return early(err)
	}
	descriptor := p[0]
	h := zstdHeader{single: descriptor&0x20 != 0, sum: descriptor&0x04 != 0, dictionary: []int{0, 1, 2, 4}[descriptor&3]}
	size := []int{0, 2, 4, 8}[descriptor>>6]
	if h.single && size == 0 {
		size = 1
	}
	window := 1
	if h.single {
		window = 0
	}
	if p, err = z.take(window + h.dictionary + size); err != nil {
		return early(err)
	}
	h.size = contentSize(p[window+h.dictionary:])
	if !h.single {
		h.window = p[0]
	}
	z.sum, z.next = h.sum, z.block
	if h.windowSize() > maxWindow {
		return tooLarge("the zstd file needs a window of more than %d MiB", maxWindow>>20)
	}
	if z.saver == nil {
		return nil
	}
	plain := z.saver.beginFrame(h)
	plain[0] |= descriptor & 3 // the dictionary's
	z.give = slices.Concat(z.give[:4], plain, p[window:window+h.dictionary])
	return nil
}

// contentSize is what a frame says that it holds, -1 if it does not say.
func contentSize(p []byte) int64 {
	switch len(p) {
	case 1:
		return int64(p[0])
	case 2:
		return int64(binary.LittleEndian.Uint16(p)) + 256
	case 4:
		return int64(binary.LittleEndian.Uint32(p))
	case 8:
		return int64(min(binary.LittleEndian.Uint64(p), 1<<62))
	}
	return -1
}

// block takes the header of a block (section 3.1.1.2).
func (z *zstdFrames) block() error {
	z.give = z.give[:0]
	p, err := z.take(3)
	if err != nil {
		return early(err)
	}
	head := int64(p[0]) | int64(p[1])<<8 | int64(p[2])<<16
	last, repeated, size := head&1 != 0, head>>1&3 == 1, head>>3
	if last {
		z.next = z.end
	}
	if !repeated {
		z.pass = size
		return nil
	}
	if p, err = z.take(1); err != nil {
		return early(err)
	}
	if p[0] == 0 && !last && z.saver.saves(size) {
		z.give = z.give[:0] // it is a hole
	}
	return nil
}

// end takes the checksum of a frame's content, which the decoder compares if
// it gets all of it.
func (z *zstdFrames) end() error {
	z.give, z.next = z.give[:0], z.magic
	if !z.sum {
		return nil
	}
	if _, err := z.take(4); err != nil {
		return early(err)
	}
	if z.saver != nil {
		z.give = z.give[:0]
	}
	return nil
}

// zstdHeader is what a frame's header says.
type zstdHeader struct {
	single     bool // there is no window: all of the content is
	sum        bool
	window     byte  // descriptor of the window
	dictionary int   // bytes of the dictionary's ID
	size       int64 // bytes of content, -1 if it does not say
}

// windowSize is in bytes (section 3.1.1.1.2).
func (h zstdHeader) windowSize() int64 {
	if h.single {
		return h.size
	}
	base := int64(1) << (10 + h.window>>3)
	return base + base/8*int64(h.window&7)
}

// plain is the descriptor and the window of a frame with neither checksum nor
// size.
func (h zstdHeader) plain() []byte {
	if !h.single {
		return []byte{0, h.window}
	}
	log := max(10, bits.Len64(uint64(max(h.size, 1)-1))) //nolint:gosec // is positive
	return []byte{0, byte(log-10) << 3}                  //nolint:gosec // the size is bounded by maxWindow
}

// maxZstdBlock is what a block holds at most, in bytes (section 3.1.1.2.4).
const maxZstdBlock = 128 << 10
