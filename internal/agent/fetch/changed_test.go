package fetch

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/ironlot/ironlot/internal/fault"
)

// TestChanged: a file that changes in the middle is never spliced.
func TestChanged(t *testing.T) {
	t.Parallel()
	first, second := content(1, 1<<20), content(2, 1<<20)
	longer := append(first[:len(first):len(first)], 1, 2, 3)
	for name, tt := range map[string]struct {
		now    []byte
		before map[string]string
		after  map[string]string
		rude   bool // sends the range of the new file in spite of If-Range
		plain  bool
	}{
		"ETag":                         {second, map[string]string{"ETag": `"a"`}, map[string]string{"ETag": `"b"`}, false, false},
		"ETag, If-Range ignored":       {second, map[string]string{"ETag": `"a"`}, map[string]string{"ETag": `"b"`}, true, false},
		"date":                         {second, map[string]string{"Last-Modified": modified}, map[string]string{"Last-Modified": "Mon, 02 Nov 2026 11:00:00 GMT"}, true, false},
		"size, If-Range ignored":       {longer, map[string]string{"ETag": `"a"`}, map[string]string{"ETag": `"a"`}, true, false},
		"shorter than what was read":   {first[:100], map[string]string{"ETag": `"a"`}, nil, true, false},
		"content alone":                {second, nil, nil, false, false},
		"content, same ETag, no range": {second, map[string]string{"ETag": `"a"`}, map[string]string{"ETag": `"a"`}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := serve(t, &server{file: tt.now, header: tt.after, plain: tt.plain})
			s := serve(t, &server{file: first, header: tt.before, cut: func(int) int { return 400000 },
				before: func(n int, w http.ResponseWriter, r *http.Request) bool {
					if n == 0 {
						return false
					}
					if tt.rude {
						r.Header.Del("If-Range")
					}
					after.ServeHTTP(w, r)
					return true
				}})
			got, _, err := download(t, s.URL, quick())
			if !errors.Is(err, ErrChanged) || fault.ClassOf(err) != fault.Transient {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			if len(got) != 400000 || !bytes.Equal(got, first[:len(got)]) {
				t.Errorf("%d bytes were given, those of the first file: %v", len(got), bytes.Equal(got, first[:len(got)]))
			}
		})
	}
}

// TestWrongRange has a server that answers with another range than asked.
func TestWrongRange(t *testing.T) {
	t.Parallel()
	file := content(1, 10000)
	for _, answer := range []string{"bytes 0-9999/10000", "bytes 999-9999/10000", "bytes 1000-2000/10000", "", "rows 1000-9999/10000", "bytes 1000-x/10000"} {
		s := serve(t, &server{file: file, header: map[string]string{"ETag": `"a"`}, cut: func(int) int { return 1000 },
			before: func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n == 0 {
					return false
				}
				w.Header().Set("ETag", `"a"`)
				w.Header().Set("Content-Range", answer)
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(file[1000:]) // the client may be gone
				return true
			}})
		got, _, err := download(t, s.URL, quick())
		if fault.ClassOf(err) != fault.Transient || err == nil || len(got) != 1000 {
			t.Errorf("%q: %d bytes, %v", answer, len(got), err)
		}
	}
}
