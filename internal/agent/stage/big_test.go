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
