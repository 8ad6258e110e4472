// Package fetch downloads a file over HTTP as one unbroken stream: a
// connection that breaks or stalls is made again where it stopped. Bytes of
// two versions of a file are never put together.
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
)

// ErrChanged says that the file on the server is not the one any more that
// the download began with.
var ErrChanged = errors.New("the file changed on the server during the download")

// Options are how patient a download is. Zero values are the defaults.
type Options struct {
	Client  *http.Client                // nil: one that trusts the system's CAs
	Stall   time.Duration               // no byte for so long breaks a connection; 30 s
	Tries   int                         // connections in a row that bring nothing new; 6
	Backoff func(try int) time.Duration // before a try, from 1; 1 s doubling up to 30 s
	Log     func(text string)           // told of each broken connection
}

// maxReconnects bounds a server that breaks every connection after a little.
const maxReconnects = 100

func (o Options) withDefaults() Options {
	if o.Client == nil {
		o.Client = &http.Client{}
	}
	if o.Stall == 0 {
		o.Stall = 30 * time.Second
	}
	if o.Tries == 0 {
		o.Tries = 6
	}
	if o.Backoff == nil {
		o.Backoff = func(try int) time.Duration { return min(time.Second<<(try-1), 30*time.Second) }
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	o.Client = withRedirects(o.Client)
	return o
}

// Body is the content of the file. It is an io.ReadCloser for one goroutine;
// Offset may be called from any.
type Body struct {
	ctx    context.Context
	url    *url.URL
	o      Options
	conn   *conn
	entity entity
	offset atomic.Int64
	sum    hash.Hash // of the bytes before offset
	err    error     // what ended the download

	tries      int // connections in a row that brought nothing new
	reconnects int
}

// Open asks for the file. Errors are fault errors: Transient when the tries
// are used up, NeedsOperator when the server refuses. Neither errors nor log
// show the URL's user, password or query.
func Open(ctx context.Context, rawURL string, o Options) (*Body, error) {
	u, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	b := &Body{ctx: ctx, url: u, o: o.withDefaults(), sum: sha256.New()}
	if err := b.connect(); err != nil {
		if err := b.reconnect(err); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Size is the length of the file in bytes, -1 when the server did not tell.
func (b *Body) Size() int64 { return b.entity.size }

// Offset is how many bytes were read.
func (b *Body) Offset() int64 { return b.offset.Load() }

// SHA256 is the digest, in hex, of the bytes that were read.
func (b *Body) SHA256() string { return hex.EncodeToString(b.sum.Sum(nil)) }

// Read reads on, over as many connections as it takes.
func (b *Body) Read(p []byte) (int, error) {
	if len(p) == 0 || b.err != nil {
		return 0, b.err
	}
	for {
		n, err := b.conn.Read(p)
		if n > 0 {
			b.sum.Write(p[:n])
			b.offset.Add(int64(n))
			b.tries = 0
			return n, nil // an error comes again
		}
		if errors.Is(err, io.EOF) && (b.entity.size < 0 || b.Offset() == b.entity.size) {
			b.err = io.EOF
		} else if err != nil {
			b.err = b.reconnect(err)
		}
		if b.err != nil {
			return 0, b.err
		}
	}
}

// Close ends the download. No Read may be running.
func (b *Body) Close() error {
	b.conn.close()
	return nil
}

// reconnect makes a new connection at the offset after one broke by cause.
func (b *Body) reconnect(cause error) error {
	for {
		b.conn.close()
		b.conn = nil
		if b.ctx.Err() != nil {
			return fmt.Errorf("the download was stopped: %w", context.Cause(b.ctx))
		}
		if !retryable(cause) {
			return b.refusal(cause)
		}
		b.tries++
		b.reconnects++
		if b.tries >= b.o.Tries || b.reconnects >= maxReconnects {
			return fault.New(fault.Transient, "check that the rescue system reaches the image server",
				"the download of %s broke off at byte %d after %d tries: %s", redact(b.url), b.Offset(), b.reconnects, scrub(cause))
		}
		b.o.Log(fmt.Sprintf("the download of %s broke off at byte %d: %s", redact(b.url), b.Offset(), scrub(cause)))
		if err := b.pause(cause); err != nil {
			return err
		}
		if cause = b.connect(); cause == nil {
			return nil
		}
	}
}

// pause waits before the next try, for as long as the server asks for if it
// does.
func (b *Body) pause(cause error) error {
	wait := b.o.Backoff(b.tries)
	var s *statusError
	if errors.As(cause, &s) && s.retryAfter > 0 {
		wait = s.retryAfter
	}
	if pause.For(b.ctx, wait) != nil {
		return fmt.Errorf("the download was stopped: %w", context.Cause(b.ctx))
	}
	return nil
}

// connect asks for the file from the offset on.
func (b *Body) connect() error {
	b.conn = nil
	ask := b.Offset() > 0 && b.entity.validator() != ""
	c, err := b.dial(ask)
	if err != nil {
		return err
	}
	if err := b.adopt(c); err != nil {
		c.close()
		return err
	}
	b.conn = c
	return nil
}

// adopt takes an answer if it goes on where the download stopped.
func (b *Body) adopt(c *conn) error {
	got := entityOf(c.resp)
	offset := b.Offset()
	switch c.resp.StatusCode {
	case http.StatusOK:
		if offset == 0 {
			b.entity = got
			return nil
		}
		if !b.entity.same(got) {
			return ErrChanged
		}
		return b.passOver(c, offset)
	case http.StatusPartialContent:
		start, total, ok := contentRange(c.resp)
		if offset == 0 || !ok || start != offset {
			return errRange
		}
		got.size = total
		if !b.entity.same(got) {
			return ErrChanged
		}
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		if offset > 0 {
			return ErrChanged
		}
	}
	return newStatusError(c.resp)
}

// passOver reads the start of the file again, on a server without ranges,
// and makes sure that it is the same.
func (b *Body) passOver(c *conn, offset int64) error {
	again := sha256.New()
	if _, err := io.CopyN(again, c, offset); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if string(again.Sum(nil)) != string(b.sum.Sum(nil)) {
		return ErrChanged
	}
	return nil
}
