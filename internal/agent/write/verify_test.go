package write_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/write"
	"github.com/ironlot/ironlot/internal/run"
)

// TestVerifyData: the data is read back, and so much of the holes that a disk
// that zeroes nothing does not get away with it.
func TestVerifyData(t *testing.T) {
	t.Parallel()
	const size = 72 * mib // one sample, at 64 MiB
	raw := hosttest.Image(t, size, 512)
	clear(raw[8*mib : size-mib])
	disk := func(t *testing.T) *hosttest.Disk {
		t.Helper()
		d := hosttest.NewDisk(t, "sda", "S1", 80*mib)
		d.Method = "write-zeroes"
		return d
	}
	written := func(t *testing.T, d *hosttest.Disk) (run.Written, *recorder, error) {
		t.Helper()
		h, rep := hosttest.New(t, d), &recorder{}
		spec := stageImage(t, h, d, raw)
		spec.Verify = run.VerifyData
		got, err := write.Run(t.Context(), h, spec, rep)
		return got, rep, err
	}
	t.Run("good disk", func(t *testing.T) {
		t.Parallel()
		d := disk(t)
		oldTalos(t, d)
		got, _, err := written(t, d)
		if err != nil || !bytes.Equal(d.Get(t, 0, size), raw) {
			t.Fatalf("%+v, %v", got, err)
		}
		if got.BytesVerified < 3*mib || got.BytesVerified > 16*mib {
			t.Errorf("%d bytes were read back", got.BytesVerified)
		}
	})
	t.Run("disk that zeroes nothing", func(t *testing.T) {
		t.Parallel()
		d := disk(t)
		oldTalos(t, d)
		d.Put(t, bytes.Repeat([]byte("old"), 20*mib), 10*mib)
		d.LyingDiscard = true
		got, rep, err := written(t, d)
		if err != nil || got.ZeroMethod != "written" || !bytes.Equal(d.Get(t, 0, size), raw) {
			t.Errorf("%+v, %v", got, err)
		}
		if !strings.Contains(rep.log.String(), "zeros included") {
			t.Errorf("log:\n%s", rep.log.String())
		}
	})
	t.Run("disk with bad data", func(t *testing.T) {
		t.Parallel()
		d := disk(t)
		d.Corrupt = func(p []byte, off int64) {
			if at := mib + 100 - off; at >= 0 && at < int64(len(p)) && len(p) > 8192 {
				p[at] ^= 1
			}
		}
		if _, _, err := written(t, d); err == nil || !strings.Contains(err.Error(), "byte 1048676 reads") {
			t.Error(err)
		}
	})
}
