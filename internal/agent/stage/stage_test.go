package stage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
