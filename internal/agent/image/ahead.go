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

	last []byte // the whole buffer of the chunk in use
	rest []byte // what Read has not given yet
	err  error
}

type chunk struct {
	buf []byte
	n   int
	err error
}

// NewAhead starts to read src in chunks of size bytes, depth of them ahead.
func NewAhead(src io.Reader, size, depth int) *Ahead {
	a := &Ahead{
		full: make(chan chunk, depth), free: make(chan []byte, depth+1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range depth + 1 {
		a.free <- make([]byte, size)
	}
	go a.fill(src)
	return a
}

func (a *Ahead) fill(src io.Reader) {
	defer close(a.done)
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-a.stop:
			return
		}
		n, err := readFull(src, buf)
		select {
		case a.full <- chunk{buf, n, err}:
		case <-a.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// readFull fills p; the source's error comes as it is.
func readFull(src io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = src.Read(p[n:])
		n += k
	}
	return n, err
}

// Next gives the next chunk, which is a full one unless the source ends. It
// is valid until the next call of Next or Read. The error, io.EOF at the end,
// comes alone.
func (a *Ahead) Next() ([]byte, error) {
	for len(a.rest) == 0 {
		if a.last != nil {
			a.free <- a.last // there is always room: it came from there
			a.last = nil
		}
		if a.err != nil {
			return nil, a.err
		}
		select {
		case <-a.stop:
			a.err = errClosed
		case c := <-a.full:
			a.last, a.rest, a.err = c.buf, c.buf[:c.n], c.err
		}
	}
	p := a.rest
	a.rest = nil
	return p, nil
}

// Read reads what was read ahead.
func (a *Ahead) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	rest, err := a.Next()
	if err != nil {
		return 0, err
	}
	n := copy(p, rest)
	a.rest = rest[n:]
	return n, nil
}

// Close ends reading and waits until the source is not in use any more. A
// reader in another goroutine gets an error.
func (a *Ahead) Close() {
	a.once.Do(func() { close(a.stop) })
	<-a.done
}
