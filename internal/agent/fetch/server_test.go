package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

const modified = "Mon, 02 Nov 2026 10:00:00 GMT"

func content(seed byte, n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(p) // never fails
	return p
}

// server serves a file with faults.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	ranges []string // the Range header of each request, "" without

	file   []byte
	header map[string]string
	// plain ignores ranges.
	plain bool
	// cut tells after how many bytes the n-th answer (from 0) is cut off;
	// -1 not at all.
	cut func(n int) int
	// before may answer the n-th request itself.
	before func(n int, w http.ResponseWriter, r *http.Request) bool
}

func serve(t *testing.T, s *server) *server {
	t.Helper()
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ranges...)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.ranges)
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	s.mu.Unlock()
	if s.before != nil && s.before(n, w, r) {
		return
	}
	for k, v := range s.header {
		w.Header().Set(k, v)
	}
	if s.plain {
		r.Header.Del("Range")
	}
	if s.cut != nil {
		if left := s.cut(n); left >= 0 {
			w = &cutter{w, left}
		}
	}
	at, _ := http.ParseTime(s.header["Last-Modified"]) // the zero time is none
	http.ServeContent(w, r, "", at, bytes.NewReader(s.file))
}

// cutter breaks the connection after some bytes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) < c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left]) // the client may be gone
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func quick() Options {
	return Options{Backoff: func(int) time.Duration { return 0 }, Stall: 10 * time.Second}
}

func download(t *testing.T, url string, o Options) ([]byte, *Body, error) {
	t.Helper()
	b, err := Open(t.Context(), url, o)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = b.Close() })
	p, err := io.ReadAll(b)
	return p, b, err
}

func digest(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}
