//go:build linux

package stage

import (
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/looptest"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// TestRAMThatOthersFill after the room in it was looked up.
func TestRAMThatOthersFill(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, always(pack(t, image.Zstd, hosttest.Image(t, 16*mib, 512))))
	h := hosttest.New(t)
	looptest.SmallRAM(t, h.RAMDir(), "size=1m")
	looked := 0
	h.Free = func() (uint64, error) {
		if looked++; looked == 1 {
			return 1 << 30, nil
		}
		return 0, nil
	}
	_, err := newStager(h, run.Image{URL: url}, report.Discard{}).run(t.Context())
	for _, part := range []string{
		"the image does not fit in the rescue system's RAM: ", "0 MiB are free, and at least 6", " MiB are needed to go on, of which 64 MiB stay free for the rescue system itself; ",
		"; name a smaller image with its digest (`image.sha256`) in the lot file", "for a server with more RAM `starter abort LOT NODE`",
	} {
		if fault.ClassOf(err) != fault.NeedsOperator || err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q", err, part)
		}
	}
	if looked != 2 {
		t.Errorf("room was looked up %d times", looked)
	}
	empty(t, h)
}
