package image

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxWindow bounds the memory that a compressed image may ask for: zstd's
// own limit for a file made without --ultra --long (128 MiB).
const maxWindow = 128 << 20

// Reader reads the raw image out of a served file. It gives io.EOF only
// behind a whole image: everything else is an error.
type Reader struct {
	opts   Options
	format Format
	layout Layout
	size   int64

	src   *source
	raw   *bufio.Reader
	saver *zeroSaver   // nil where all zeros are read
	whole func() error // says whether the compressed file ended where it should
	close func()
	err   error
}

// Options are how an image is read.
type Options struct {
	// Limit is the largest raw image, in bytes, holes included.
	Limit int64
	// Proven says that the caller compares a digest of the whole served file.
	// Only then is the checksum of a zstd frame's content left alone, so that
	// runs of zeros need not be made: reading takes a quarter of the time.
	Proven bool
}

// Open reads the start of a served file and tells what it is. A raw image
// larger than the limit is ErrTooLarge. The file must be a raw disk image,
// or one compressed once; all else is ErrNotImage or ErrCorrupt. Errors of
// src are passed on as they are.
func Open(src io.Reader, opts Options) (*Reader, error) {
	r := &Reader{opts: opts, src: &source{r: src}, close: func() {}, whole: func() error { return nil }}
	in := bufio.NewReaderSize(r.src, HeadSize)
	head, err := in.Peek(HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if r.format, err = Detect(head); err != nil {
		return nil, err
	}
	if err := r.decode(in, head); err != nil {
		return nil, r.explain(err)
	}
	if err := r.inspect(); err != nil {
		return nil, err
	}
	return r, nil
}

// decode puts the decoder for the format on top of in.
func (r *Reader) decode(in *bufio.Reader, head []byte) error {
	switch r.format {
	case Zstd:
		return r.decodeZstd(in)
	case XZ:
		if err := checkDictionary(head); err != nil {
			return err
		}
		guard := &xzGuard{r: in}
		dec, err := xz.NewReader(guard)
		if err != nil {
			return err
		}
		r.whole = guard.whole
		r.raw = bufio.NewReaderSize(dec, HeadSize)
	case Gzip:
		dec, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		r.raw = bufio.NewReaderSize(dec, HeadSize)
	default:
		r.raw = in
	}
	return nil
}

func (r *Reader) decodeZstd(in *bufio.Reader) error {
	opts := []zstd.DOption{zstd.WithDecoderMaxWindow(maxWindow)}
	if r.opts.Proven {
		r.saver = &zeroSaver{}
		opts = append(opts, zstd.WithDecoderConcurrency(1)) // which zeroSaver needs
	}
	frames := newZstdFrames(in, r.saver)
	dec, err := zstd.NewReader(frames, opts...)
	if err != nil {
		return err
	}
	r.close, r.whole = dec.Close, frames.whole
	r.raw = bufio.NewReaderSize(dec, HeadSize)
	if r.saver != nil {
		r.saver.dec = dec
		r.raw = bufio.NewReaderSize(filled{r.saver}, HeadSize)
	}
	return nil
}

// inspect looks at the start of the raw image, and closes r if it is none.
func (r *Reader) inspect() (err error) {
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	head, err := r.raw.Peek(HeadSize)
	if errors.Is(err, io.EOF) {
		err = r.whole() // all of it is here
	}
	if err != nil {
		return r.explain(err)
	}
	inner, err := Detect(head)
	if err != nil {
		return inside(r.format, err)
	}
	if inner != Raw {
		return notImage("it is a %s file inside a %s file: compress the image once", inner, r.format)
	}
	if r.layout, err = ParseLayout(head); err != nil {
		return inside(r.format, err)
	}
	if r.layout.MinSize > r.opts.Limit {
		return tooLarge("its partition table speaks of %d bytes, and %d are allowed", r.layout.MinSize, r.opts.Limit)
	}
	return nil
}

// Format is how the image is served.
func (r *Reader) Format() Format { return r.format }

// Layout is what the image's start says about it.
func (r *Reader) Layout() Layout { return r.layout }

// Read reads the raw image.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err := r.raw.Read(p)
	return n, r.seen(int64(n), err)
}

// piece reads either n bytes into p or tells of zeros, which begin and end at
// a multiple of Block.
func (r *Reader) piece(p []byte) (n int, zeros int64, err error) {
	if r.err != nil || len(p) == 0 {
		return 0, 0, r.err
	}
	if r.saver == nil || r.raw.Buffered() > 0 {
		n, err = r.raw.Read(p)
	} else {
		n, zeros, err = r.saver.piece(p)
	}
	return n, zeros, r.seen(int64(n)+zeros, err)
}

// seen takes note of so many bytes more, and of what the decoder says.
func (r *Reader) seen(n int64, err error) error {
	r.size += n
	switch {
	case errors.Is(err, io.EOF):
		r.Close()
		r.err = r.end()
	case err != nil:
		r.err = r.explain(err)
	case r.size > r.opts.Limit:
		r.err = tooLarge("it has more than %d bytes", r.opts.Limit)
	}
	return r.err
}

// end checks that the image is whole and gives io.EOF if it is.
func (r *Reader) end() error {
	if err := r.whole(); err != nil {
		return r.explain(err)
	}
	if r.size%512 != 0 {
		return corrupt("it has %d bytes, which is no multiple of 512", r.size)
	}
	// A file that is cut between two frames ends well; the table knows.
	if r.size < r.layout.MinSize {
		return corrupt("it ends after %d bytes, and its partition table speaks of %d", r.size, r.layout.MinSize)
	}
	return io.EOF
}

// Close ends the decoder; the source stays open. A Read must not be running.
func (r *Reader) Close() { r.close() }

// explain tells a failing source from a bad image. It closes the decoder
// first, which may read the source in a goroutine of its own.
func (r *Reader) explain(err error) error {
	r.Close()
	switch {
	case r.src.err != nil:
		return r.src.err
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrTooLarge):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return corrupt("the %s file ends too early, after %d bytes", r.format, r.src.n)
	}
	return corrupt("the %s file is broken near byte %d: %w", r.format, r.src.n, err)
}

// inside says where a problem lies, unless that is plain.
func inside(format Format, err error) error {
	if format == Raw {
		return err
	}
	return within(format, err)
}

// source remembers how far it was read and why reading failed.
type source struct {
	r   io.Reader
	n   int64
	err error // never io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
