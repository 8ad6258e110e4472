//go:build !race

package stage

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/run"
)

func TestFullSize(t *testing.T) {
	t.Parallel()
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
