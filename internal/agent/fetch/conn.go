package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// errStalled breaks a connection that brings nothing.
var errStalled = errors.New("no byte came for too long")

// errRange says that a server answered for another range than was asked for.
var errRange = errors.New("the server answered with a range that was not asked for")

// conn is one request and its answer. A watchdog breaks it when the other
// side is silent while something is waited for.
type conn struct {
	resp   *http.Response
	ctx    context.Context
	cancel context.CancelCauseFunc
	dog    *time.Timer
	stall  time.Duration
}

// dial sends the request and waits for the answer's header.
func (b *Body) dial(ranged bool) (*conn, error) {
	c := &conn{stall: b.o.Stall}
	c.ctx, c.cancel = context.WithCancelCause(b.ctx)
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, b.url.String(), nil)
	if err != nil {
		c.cancel(nil)
		return nil, err
	}
	// The file is wanted as it lies on the server.
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "ironlot-agent")
	if ranged {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", b.Offset()))
		req.Header.Set("If-Range", b.entity.validator())
	}
	c.dog = time.AfterFunc(c.stall, func() { c.cancel(errStalled) })
	c.resp, err = b.o.Client.Do(req) //nolint:bodyclose // close does it, when the body has been read
	c.dog.Stop()
	if err != nil {
		err = c.reason(err)
		c.cancel(nil)
		return nil, err
	}
	return c, nil
}

// Read reads the answer's body.
func (c *conn) Read(p []byte) (int, error) {
	c.dog.Reset(c.stall)
	n, err := c.resp.Body.Read(p)
	c.dog.Stop()
	return n, c.reason(err)
}

// reason prefers why the request was canceled to that it was.
func (c *conn) reason(err error) error {
	if err != nil && !errors.Is(err, io.EOF) && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return err
}

func (c *conn) close() {
	if c == nil {
		return
	}
	c.dog.Stop()
	c.cancel(nil)
	_ = c.resp.Body.Close() // nothing is wanted from it any more
}

// entity is one version of the file, as far as the server tells.
type entity struct {
	size     int64 // -1 unknown
	etag     string
	modified string
	dated    bool // modified is old enough to tell two versions apart
}

func entityOf(resp *http.Response) entity {
	e := entity{size: resp.ContentLength, etag: resp.Header.Get("ETag"), modified: resp.Header.Get("Last-Modified")}
	modified, err1 := http.ParseTime(e.modified)
	date, err2 := http.ParseTime(resp.Header.Get("Date"))
	// RFC 9110, section 8.8.2.2.
	e.dated = err1 == nil && err2 == nil && date.Sub(modified) >= time.Second
	return e
}

// validator is what If-Range may carry (RFC 9110, section 13.1.5): a strong
// ETag, or a date when there is no ETag. Without one no range is asked for.
func (e entity) validator() string {
	switch {
	case e.etag == "" && e.dated:
		return e.modified
	case strings.HasPrefix(e.etag, "W/"):
		return ""
	}
	return e.etag
}

// same reports whether nothing speaks against two answers being of the same
// version of the file.
func (e entity) same(o entity) bool {
	return (e.size < 0 || o.size < 0 || e.size == o.size) &&
		(e.etag == "" || o.etag == "" || e.etag == o.etag) &&
		(e.modified == "" || o.modified == "" || e.modified == o.modified)
}

// contentRange reads "bytes first-last/total" of an answer; the total is -1
// when it is not told.
func contentRange(resp *http.Response) (start, total int64, ok bool) {
	text, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes ")
	if !ok {
		return 0, 0, false
	}
	span, size, ok1 := strings.Cut(text, "/")
	first, last, ok2 := strings.Cut(span, "-")
	start, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	total = -1
	var err3 error
	if size != "*" {
		total, err3 = strconv.ParseInt(size, 10, 64)
	}
	ok = ok1 && ok2 && errors.Join(err1, err2, err3) == nil && start >= 0 && end >= start && (total < 0 || end == total-1)
	return start, total, ok
}
