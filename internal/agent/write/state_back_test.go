//go:build !race

package write_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/write"
	"github.com/ironlot/ironlot/internal/fault"
)

// TestStateThatIsNotGivenBack has a disk read back what was written when it is
// compared, and something else when the config is read out of STATE.
func TestStateThatIsNotGivenBack(t *testing.T) {
	t.Parallel()
	for reason, what := range map[string]string{
		"it reads another one":                                  canary,
		"no machine config: no filesystem of the expected kind": "XFSB",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h, d, _, spec := newState(t, 512, nil)
			at := int64(-1) // where it was read first, to be compared
			d.Corrupt = func(p []byte, off int64) {
				i := int64(bytes.Index(p, []byte(what)))
				switch {
				case i >= 0 && at < 0:
					at = off + i
				case i >= 0 && off+i == at:
					p[i] ^= 1
				}
			}
			_, err := write.Run(t.Context(), h, spec, report.Discard{})
			want := "disk sda (serial S1) does not give the machine config back out of STATE: " + reason +
				"; `starter retry LOT NODE --from disk-prep`; if it happens again have the disk replaced"
			if fault.ClassOf(err) != fault.NeedsOperator || err == nil || err.Error() != want || strings.Contains(err.Error(), canary) {
				t.Errorf("%v, want %q", err, want)
			}
			if labels(t, d) != "" || !signed(t, d) {
				t.Errorf("the disk shows %q", labels(t, d))
			}
		})
	}
}
