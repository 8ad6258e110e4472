package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 16*mib, 512)
	packed := pack(t, image.Zstd, raw)
	entries := bytes.Clone(raw)
	entries[2*512+40] ^= 1 // where the first partition ends
	for name, tt := range map[string]struct {
		served   []byte
		img      run.Image
		kind     error
		text     string
		requests int32
	}{
		"page":       {[]byte("<html>"), run.Image{}, image.ErrNotImage, "an HTML page", 1},
		"twice":      {pack(t, image.Gzip, packed), run.Image{}, image.ErrNotImage, "a zstd file inside a gzip file", 1},
		"cut":        {packed[:len(packed)/2], run.Image{}, image.ErrCorrupt, "ends too early", 2},
		"cut raw":    {raw[:8*mib], run.Image{}, image.ErrCorrupt, "ends after 8388608 bytes", 2},
		"entries":    {entries, run.Image{}, image.ErrCorrupt, "wrong checksum of the entries", 2},
		"digest":     {packed, run.Image{SHA256: strings.Repeat("a", 64)}, errDigest, digest(packed), 2},
		"raw digest": {packed, run.Image{RawSHA256: strings.Repeat("a", 64)}, errDigest, digest(raw), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := serve(t, always(tt.served))
			h := hosttest.New(t)
			img := tt.img
			img.URL = url + "?token=s3cret"
			_, err := newStager(h, img, report.Discard{}).run(t.Context())
			if e, ok := fault.As(err); !ok || !errors.Is(err, tt.kind) || e.Class != fault.NeedsOperator || !strings.Contains(e.Message, tt.text) || !strings.Contains(e.Message, url) {
				t.Errorf("got %v, want %q", err, tt.text)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("text %q", err)
			}
			if n := requests.Load(); n != tt.requests {
				t.Errorf("the server was asked %d times, want %d", n, tt.requests)
			}
			empty(t, h)
		})
	}
}

// TestSecondDownload: a damaged download is done once more.
func TestSecondDownload(t *testing.T) {
	t.Parallel()
	packed := pack(t, image.Zstd, hosttest.Image(t, 16*mib, 512))
	bad := bytes.Clone(packed)
	bad[len(bad)/2] ^= 1
	url, requests := serve(t, func(n int) []byte { return [][]byte{bad, packed}[n] })
	rep := &recorder{}
	got, err := newStager(hosttest.New(t), run.Image{URL: url}, rep).run(t.Context())
	if err != nil || got.DownloadSHA256 != digest(packed) || requests.Load() != 2 {
		t.Errorf("%+v after %d requests, %v", got, requests.Load(), err)
	}
	if all := strings.Join(rep.log, "\n"); !strings.Contains(all, "did: download 1 failed") {
		t.Errorf("log:\n%s", all)
	}
}

// TestResume: the connection breaks below the decoder, twice.
func TestResume(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 16*mib, 512)
	packed := pack(t, image.XZ, raw)
	var ranges []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		w.Header().Set("ETag", `"a"`)
		if len(ranges) < 3 {
			w = &breaking{w}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(packed))
	}))
	t.Cleanup(s.Close)
	got, err := newStager(hosttest.New(t), run.Image{URL: s.URL, RawSHA256: digest(raw)}, report.Discard{}).run(t.Context())
	if err != nil || got.DownloadSHA256 != digest(packed) {
		t.Fatalf("%+v, %v", got, err)
	}
	if fmt.Sprint(ranges) != "[ bytes=32768- bytes=65536-]" {
		t.Errorf("ranges %q", ranges)
	}
}

// breaking breaks a connection behind its first piece, which is of 32 KiB.
type breaking struct{ http.ResponseWriter }

func (b *breaking) Write(p []byte) (int, error) {
	_, _ = b.ResponseWriter.Write(p) // the client may be gone
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func TestShortRAM(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, always(pack(t, image.Zstd, hosttest.Image(t, 16*mib, 512))))
	h := hosttest.New(t)
	calls := 0
	h.Free = func() (uint64, error) {
		calls++
		return reserve + mib + 100 - uint64(min(calls-1, 1)*mib), nil
	}
	_, err := newStager(h, run.Image{URL: url}, report.Discard{}).run(t.Context())
	if e, ok := fault.As(err); !ok || e.Class != fault.NeedsOperator || !strings.Contains(e.Message, "64 MiB are free") {
		t.Errorf("got %v", err)
	}
	if calls < 2 {
		t.Errorf("room was looked up %d times", calls)
	}
	empty(t, h)
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped by the test")
	packed := pack(t, image.Zstd, hosttest.Image(t, 16*mib, 512))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(packed[:len(packed)/2]) // the client may be gone
		_ = http.NewResponseController(w).Flush()
		cancel(stop)
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	h := hosttest.New(t)
	if _, err := Run(ctx, h, api.StageSpec{Image: run.Image{URL: s.URL}}, report.Discard{}); !errors.Is(err, stop) {
		t.Error(err)
	}
	empty(t, h)
}
