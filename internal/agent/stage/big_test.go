package stage

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/run"
)

// allocated is how many bytes a file takes on its filesystem.
func allocated(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func TestFullSize(t *testing.T) {
	t.Parallel()
	if testing.Short() || hosttest.Race {
		t.Skip("a 4247 MiB image takes too long in short mode and under the race detector")
	}
	const size = 4247 * mib
	packed, parts := hosttest.ImageZstd(t, size), hosttest.ImageParts(t, size, 512)
	url, _ := serve(t, always(packed))
	h := hosttest.New(t)
	start := time.Now()
	got, err := Run(t.Context(), h, api.StageSpec{Image: run.Image{URL: url}}, report.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("staged %d MiB (%d bytes as served) in %v", size/mib, len(packed), time.Since(start))
	if got.RawSize != size || got.DataSize > 2*mib || allocated(t, Image(h.RAMDir())) > 4*mib {
		t.Errorf("staged %+v, which takes %d bytes", got, allocated(t, Image(h.RAMDir())))
	}
	f, err := os.Open(Image(h.RAMDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for off, data := range parts {
		p := make([]byte, len(data))
		if _, err := f.ReadAt(p, off); err != nil || !bytes.Equal(p, data) {
			t.Errorf("the data at %d is not there: %v", off, err)
		}
	}
}

// BenchmarkStage stages 256 MiB, of which a good part is data that zstd can
// do something with, over a loopback connection.
func BenchmarkStage(b *testing.B) {
	raw := hosttest.Image(b, 256*mib, 512)
	for off := int64(100 * mib); off < 160*mib; off += 4096 {
		copy(raw[off:], fmt.Sprintf("block %d of something that packs well", off))
		copy(raw[off+2000:], raw[mib:mib+1000])
	}
	for _, format := range []image.Format{image.Raw, image.Zstd, image.Gzip, image.XZ} {
		packed := pack(b, format, raw)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(bytes.NewReader(packed), 0, int64(len(packed))))
		}))
		b.Run(string(format), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := Run(b.Context(), hosttest.New(b), api.StageSpec{Image: run.Image{URL: s.URL}}, report.Discard{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		s.Close()
	}
}
