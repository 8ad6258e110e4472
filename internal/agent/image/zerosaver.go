package image

import (
	"bytes"

	"github.com/klauspost/compress/zstd"
)

// zeroSaver keeps from the decoder the blocks that only repeat a zero and
// follow a window of zeros: what comes behind them can refer to nothing else,
// so it is decoded as if they had been there. They are told as zeros in place
// of being made. A frame's checksum, which speaks of them too, is not compared
// then: a digest of the served file has to prove it.
//
// A block is kept back when the decoder asks for it, which it does only when
// all before it was read (zstd.WithDecoderConcurrency(1)).
type zeroSaver struct {
	dec  *zstd.Decoder
	pos  int64 // bytes of the image so far
	hole int64 // zeros before what the decoder gives next
	kept []byte
	err  error // comes behind kept

	window int64 // of the frame
	run    int64 // zeros that end what the decoder has given of the frame
	ends   int64 // where the frame's content ends, -1 if it does not say
}

// beginFrame takes a frame's header and gives the one for the decoder.
func (s *zeroSaver) beginFrame(h zstdHeader) []byte {
	s.window, s.run, s.ends = h.windowSize(), 0, -1
	if h.size >= 0 {
		s.ends = s.pos + s.hole + h.size
	}
	return h.plain()
}

// endFrame compares the size of a frame's content, of which all is read.
func (s *zeroSaver) endFrame() error {
	if s == nil {
		return nil
	}
	if at := s.pos + s.hole; s.ends >= 0 && at != s.ends {
		return corrupt("a zstd frame ends at byte %d of its content, and says that it ends at %d", at, s.ends)
	}
	return nil
}

// saves reports whether a block of size zeros is kept from the decoder. What
// it would refuse it gets.
func (s *zeroSaver) saves(size int64) bool {
	if s == nil || s.run < s.window || size > min(s.window, maxZstdBlock) {
		return false
	}
	s.hole += size
	return true
}

// count looks at what the decoder has given.
func (s *zeroSaver) count(p []byte) {
	if !IsZero(p) {
		p, s.run = p[len(bytes.TrimRight(p, "\x00")):], 0
	}
	s.run += int64(len(p))
}

// piece reads either n bytes of data into p or tells of zeros: a whole number
// of blocks of Block bytes that start at such a one.
func (s *zeroSaver) piece(p []byte) (n int, zeros int64, err error) {
	if s.hole == 0 && len(s.kept) == 0 && s.err == nil {
		n, err = s.dec.Read(p)
		s.count(p[:n])
		if s.hole == 0 {
			s.pos += int64(n)
			return n, 0, err
		}
		s.kept, s.err = append(s.kept[:0], p[:n]...), err
		n, err = 0, nil
	}
	odd := -s.pos & (Block - 1)
	switch {
	case s.hole == 0:
		n = copy(p, s.kept)
		s.kept = s.kept[n:]
		if len(s.kept) == 0 {
			err, s.err = s.err, nil
		}
	case odd == 0 && s.hole >= Block:
		zeros = s.hole / Block * Block
	default:
		n = int(min(s.hole, int64(len(p))))
		if odd > 0 {
			n = int(min(int64(n), odd))
		}
		clear(p[:n])
	}
	if s.hole > 0 {
		s.hole -= int64(n) + zeros
	}
	s.pos += int64(n) + zeros
	return n, zeros, err
}

// filled reads the zeros too.
type filled struct{ s *zeroSaver }

func (f filled) Read(p []byte) (int, error) {
	n, zeros, err := f.s.piece(p)
	if zeros > 0 {
		n = int(min(zeros, int64(len(p))))
		clear(p[:n])
		f.s.hole += zeros - int64(n)
		f.s.pos -= zeros - int64(n)
	}
	return n, err
}
