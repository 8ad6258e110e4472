package stage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/fetch"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

const mib = 1 << 20

func pack(t testing.TB, format image.Format, p []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch format {
	case image.Raw:
		return p
	case image.Zstd:
		w, _ := zstd.NewWriter(&out) // never fails without options
		_, err = w.Write(p)
		err = errors.Join(err, w.Close())
	case image.Gzip:
		w := gzip.NewWriter(&out)
		_, err = w.Write(p)
		err = errors.Join(err, w.Close())
	case image.XZ:
		w, werr := xz.WriterConfig{DictCap: 1 << 16}.NewWriter(&out)
		if werr != nil {
			t.Fatal(werr)
		}
		_, err = w.Write(p)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func digest(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// serve serves what file gives for the n-th request, from 0, with ranges.
func serve(t testing.TB, file func(n int) []byte) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := file(int(requests.Add(1)) - 1)
		w.Header().Set("ETag", `"`+digest(p)+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/metal-amd64.raw.zst", requests
}

func always(p []byte) func(int) []byte { return func(int) []byte { return p } }

// recorder keeps what is reported.
type recorder struct {
	mu   sync.Mutex
	log  []string
	last api.Progress
}

func (r *recorder) Progress(p api.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = p
}

func (r *recorder) Log(e api.LogEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, e.Event+": "+e.Text)
}

func newStager(h *hosttest.Host, img run.Image, rep report.Reporter) stager {
	return stager{h: h, rep: rep, image: img, fetch: fetch.Options{Backoff: func(int) time.Duration { return 0 }}}
}

// empty fails the test if anything is left in the RAM directory.
func empty(t *testing.T, h *hosttest.Host) {
	t.Helper()
	left, err := os.ReadDir(h.RAMDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("%s is left behind", f.Name())
	}
}

func TestStage(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 16*mib, 512)
	for _, format := range []image.Format{image.Raw, image.Zstd, image.XZ, image.Gzip} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			served := pack(t, format, raw)
			url, _ := serve(t, always(served))
			h, rep := hosttest.New(t), &recorder{}
			got, err := Run(t.Context(), h, api.StageSpec{Image: run.Image{URL: url, SHA256: strings.ToUpper(digest(served)), RawSHA256: digest(raw)}}, rep)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(Image(h.RAMDir()))
			if err != nil || !bytes.Equal(file, raw) {
				t.Errorf("the staged file has %d bytes, %v", len(file), err)
			}
			got.Seconds = 0
			want := run.Staged{Format: string(format), DownloadSHA256: digest(served), RawSHA256: digest(raw), DataSHA256: dataDigest(raw), RawSize: 16 * mib, DataSize: got.DataSize}
			if got != want || got.DataSize < mib || got.DataSize > 2*mib {
				t.Errorf("staged %+v, want %+v", got, want)
			}
			if found, err := Find(h.RAMDir()); err != nil || found.DataSHA256 != got.DataSHA256 {
				t.Errorf("found %+v, %v", found, err)
			}
			if rep.last.Done != int64(len(served)) || rep.last.Total != int64(len(served)) {
				t.Errorf("progress %+v", rep.last)
			}
		})
	}
}

func dataDigest(raw []byte) string {
	sum := image.NewDataDigest()
	sum.Add(raw, 0)
	return sum.Sum(int64(len(raw)))
}

// TestDigests: that of the raw image is computed where it is asked for, or
// nothing else would tell images apart for a person.
func TestDigests(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 8*mib, 512)
	packed := pack(t, image.Zstd, raw)
	url, _ := serve(t, always(packed))
	for name, tt := range map[string]struct {
		img run.Image
		raw string
	}{
		"none":     {run.Image{URL: url}, digest(raw)},
		"download": {run.Image{URL: url, SHA256: digest(packed)}, ""},
		"raw":      {run.Image{URL: url, RawSHA256: digest(raw)}, digest(raw)},
	} {
		got, err := newStager(hosttest.New(t), tt.img, report.Discard{}).run(t.Context())
		if err != nil || got.RawSHA256 != tt.raw || got.DataSHA256 != dataDigest(raw) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestHoles: what is zeros in the image takes no room.
func TestHoles(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, always(pack(t, image.Zstd, hosttest.Image(t, 64*mib, 512))))
	h := hosttest.New(t)
	got, err := Run(t.Context(), h, api.StageSpec{Image: run.Image{URL: url}}, report.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if used := allocated(t, Image(h.RAMDir())); used > got.DataSize+mib || used < got.DataSize/2 {
		t.Errorf("%d bytes are used for %d bytes of data", used, got.DataSize)
	}
}

// TestRefusedUntouched: a bad spec is refused before anything is done.
func TestRefusedUntouched(t *testing.T) {
	t.Parallel()
	url, requests := serve(t, always(nil))
	for name, img := range map[string]run.Image{
		"scheme":     {URL: "ftp://example.org/image"},
		"no URL":     {},
		"sha256":     {URL: url, SHA256: "abc"},
		"raw sha256": {URL: url, RawSHA256: strings.Repeat("g", 64)},
		"sha512":     {URL: url, SHA256: strings.Repeat("a", 128)},
	} {
		h := hosttest.New(t)
		_, err := newStager(h, img, report.Discard{}).run(t.Context())
		if e, ok := fault.As(err); !ok || e.Class != fault.NeedsOperator || e.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
		empty(t, h)
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

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
