package image

import (
	"errors"
	"io"
	"sync"
)

// errClosed is what an Ahead gives that was closed before its end.
var errClosed = errors.New("the reader was closed")

// Ahead reads a source ahead in a goroutine of its own, so that two stages of
// a pipeline work at the same time. It is used by one goroutine.
type Ahead struct {
	full chan chunk
	free chan []byte
	stop chan struct{}
	done chan struct{}
	once sync.Once

	last  []byte // the whole buffer of the chunk in use
	rest  []byte // what Read has not given yet
	zeros int64  // behind it
	err   error
}

// chunk is n bytes of data and then zeros.
type chunk struct {
	buf   []byte
	n     int
	zeros int64
	err   error
}

// pieces reads either n bytes into p or tells of zeros.
type pieces func(p []byte) (n int, zeros int64, err error)

// NewAhead starts to read src in chunks of size bytes, depth of them ahead.
func NewAhead(src io.Reader, size, depth int) *Ahead {
	return newAhead(func(p []byte) (int, int64, error) {
		n, err := src.Read(p)
		return n, 0, err
	}, size, depth)
}

// Ahead starts to read the image in chunks of size bytes, a multiple of
// Block, depth of them ahead. Nothing else may read it then.
func (r *Reader) Ahead(size, depth int) *Ahead { return newAhead(r.piece, size, depth) }

func newAhead(src pieces, size, depth int) *Ahead {
	a := &Ahead{
		full: make(chan chunk, depth), free: make(chan []byte, depth+1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range depth + 1 {
		a.free <- nil // made when it is needed: a short file needs few
	}
	go a.fill(src, size)
	return a
}

func (a *Ahead) fill(src pieces, size int) {
	defer close(a.done)
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-a.stop:
			return
		}
		if buf == nil {
			buf = make([]byte, size)
		}
		c := readFull(src, buf)
		select {
		case a.full <- c:
		case <-a.stop:
			return
		}
		if c.err != nil {
			return
		}
	}
}

// readFull fills the buffer up to a hole; the source's error comes as it is.
func readFull(src pieces, buf []byte) chunk {
	c := chunk{buf: buf}
	for c.n < len(buf) && c.zeros == 0 && c.err == nil {
		var n int
		n, c.zeros, c.err = src(buf[c.n:])
		c.n += n
	}
	return c
}

// Next gives the next chunk and how many zeros follow it. It is a full one
// unless zeros follow or the source ends, and valid until the next call of
// Next or Read. The error, io.EOF at the end, comes alone.
func (a *Ahead) Next() (data []byte, zeros int64, err error) {
	for len(a.rest) == 0 && a.zeros == 0 {
		if a.last != nil {
			a.free <- a.last // there is always room: it came from there
			a.last = nil
		}
		if a.err != nil {
			return nil, 0, a.err
		}
		select {
		case <-a.stop:
			a.err = errClosed
		case c := <-a.full:
			a.last, a.rest, a.zeros, a.err = c.buf, c.buf[:c.n], c.zeros, c.err
		}
	}
	data, zeros = a.rest, a.zeros
	a.rest, a.zeros = nil, 0
	return data, zeros, nil
}

// Read reads what was read ahead.
func (a *Ahead) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	rest, zeros, err := a.Next()
	if err != nil {
		return 0, err
	}
	n := copy(p, rest)
	if n == 0 {
		n = int(min(zeros, int64(len(p))))
		clear(p[:n])
		zeros -= int64(n)
	}
	a.rest, a.zeros = rest[min(n, len(rest)):], zeros
	return n, nil
}

// Close ends reading and waits until the source is not in use any more. A
// reader in another goroutine gets an error.
func (a *Ahead) Close() {
	a.once.Do(func() { close(a.stop) })
	<-a.done
}
