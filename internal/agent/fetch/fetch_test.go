package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
)

func TestDownload(t *testing.T) {
	t.Parallel()
	file := content(1, 1<<20)
	cuts := func(at ...int) func(int) int {
		return func(n int) int {
			if n < len(at) {
				return at[n]
			}
			return -1
		}
	}
	tests := map[string]struct {
		server *server
		ranges []string
	}{
		"plain":               {&server{}, []string{""}},
		"resumed by ETag":     {&server{header: map[string]string{"ETag": `"a"`}, cut: cuts(1000, 5000)}, []string{"", "bytes=1000-", "bytes=6000-"}},
		"resumed by date":     {&server{header: map[string]string{"Last-Modified": modified}, cut: cuts(1000)}, []string{"", "bytes=1000-"}},
		"no range by weak":    {&server{header: map[string]string{"ETag": `W/"a"`}, cut: cuts(1000)}, []string{"", ""}},
		"no validator":        {&server{cut: cuts(1000, 500, 5000)}, []string{"", "", "", ""}},
		"ranges ignored":      {&server{header: map[string]string{"ETag": `"a"`}, plain: true, cut: cuts(300000, 400000)}, []string{"", "bytes=300000-", "bytes=400000-"}},
		"cut before any byte": {&server{header: map[string]string{"ETag": `"a"`}, cut: cuts(0, 0, 7, 0)}, []string{"", "", "", "bytes=7-", "bytes=7-"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.server.file = file
			s := serve(t, tt.server)
			got, b, err := download(t, s.URL, quick())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, file) || b.SHA256() != digest(file) || b.Offset() != int64(len(file)) || b.Size() != int64(len(file)) {
				t.Errorf("%d of %d bytes, the same: %v", len(got), b.Size(), bytes.Equal(got, file))
			}
			if asked := s.asked(); fmt.Sprint(asked) != fmt.Sprint(tt.ranges) {
				t.Errorf("asked for %q, want %q", asked, tt.ranges)
			}
		})
	}
}

// TestRetries: the server is busy for a while.
func TestRetries(t *testing.T) {
	t.Parallel()
	file := content(1, 5000)
	codes := []int{500, 429, 503, 408}
	s := serve(t, &server{file: file, before: func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n < len(codes) {
			w.WriteHeader(codes[n])
		}
		return n < len(codes)
	}})
	var logged []string
	o := quick()
	o.Log = func(text string) { logged = append(logged, text) }
	if got, _, err := download(t, s.URL, o); err != nil || !bytes.Equal(got, file) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if len(logged) != len(codes) || !strings.Contains(logged[1], "429 Too Many Requests") {
		t.Errorf("log %q", logged)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "86400": time.Minute, "-1": 0, "": 0, "soon": 0,
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat): time.Minute,
	} {
		var s *statusError
		resp := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {header}}}
		if !errors.As(newStatusError(resp), &s) || s.retryAfter != want {
			t.Errorf("%q: %v, want %v", header, s.retryAfter, want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, code := range []int{204, 304, 400, 401, 402, 403, 404, 410} {
		s := serve(t, &server{before: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			return true
		}})
		_, err := Open(t.Context(), s.URL+"/image", quick())
		if e, ok := fault.As(err); !ok || e.Class != fault.NeedsOperator || !strings.Contains(e.Message, strconv.Itoa(code)) || !strings.Contains(e.Message, "/image") {
			t.Errorf("%d: %v", code, err)
		}
		if n := len(s.asked()); n != 1 {
			t.Errorf("%d: asked %d times", code, n)
		}
	}
}

func TestGivesUp(t *testing.T) {
	t.Parallel()
	s := serve(t, &server{file: content(1, 5000), header: map[string]string{"ETag": `"a"`}, cut: func(n int) int { return max(0, 100-n*100) }})
	got, _, err := download(t, s.URL, quick())
	if fault.ClassOf(err) != fault.Transient || len(got) != 100 || !strings.Contains(err.Error(), "at byte 100") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if n := len(s.asked()); n != 6 {
		t.Errorf("asked %d times", n)
	}
	// A byte at a time is progress, but not forever.
	s = serve(t, &server{file: content(1, 5000), header: map[string]string{"ETag": `"a"`}, cut: func(int) int { return 1 }})
	if _, _, err = download(t, s.URL, quick()); err == nil || len(s.asked()) != maxReconnects {
		t.Errorf("asked %d times, %v", len(s.asked()), err)
	}
}

// TestContentLength has answers that are shorter or longer than they say.
func TestContentLength(t *testing.T) {
	t.Parallel()
	file := content(1, 5000)
	for says, want := range map[int]int{6000: 5000, 4000: 4000} {
		s := serve(t, &server{before: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return true
			}
			_, _ = fmt.Fprintf(buf, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", says, file) // the client may be gone
			_, _ = buf.Flush(), conn.Close()
			return true
		}})
		got, _, err := download(t, s.URL, quick())
		if len(got) != want || (err == nil) != (says < len(file)) {
			t.Errorf("says %d: %d bytes, %v", says, len(got), err)
		}
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	file := content(1, 5000)
	s := serve(t, &server{file: file, header: map[string]string{"ETag": `"a"`}, before: func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			return false
		}
		if n == 1 { // the second one sends some bytes first
			w.Header().Set("ETag", `"a"`)
			w.Header().Set("Content-Length", "5000")
			_, _ = w.Write(file[:1000]) // the client may be gone
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		return true
	}})
	o := quick()
	o.Stall = time.Second // a busy computer alone must not look like a stall
	got, _, err := download(t, s.URL, o)
	asked := s.asked()
	if err != nil || !bytes.Equal(got, file) || len(asked) < 3 || asked[0]+asked[1] != "" || asked[len(asked)-1] != "bytes=1000-" {
		t.Errorf("%d bytes, asked for %q, %v", len(got), asked, err)
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by the test")
	s := serve(t, &server{before: func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		cancel(stopped)
		<-r.Context().Done()
		return true
	}})
	if _, err := Open(ctx, s.URL, quick()); !errors.Is(err, stopped) || len(s.asked()) != 1 {
		t.Errorf("asked %d times, %v", len(s.asked()), err)
	}
}
