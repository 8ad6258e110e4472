//go:build linux

package prep_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/looptest"
	"github.com/ironlot/ironlot/internal/agent/prep"
)

// stopper is a host whose disks end the context after so many writes.
type stopper struct {
	host.Host
	left int
	stop context.CancelFunc
}

type stoppingDisk struct {
	host.Disk
	*stopper
}

func (s *stopper) OpenDisk(ctx context.Context, name string, write bool) (host.Disk, error) {
	d, err := s.Host.OpenDisk(ctx, name, write)
	if err != nil || !write {
		return d, err
	}
	return stoppingDisk{d, s}, nil
}

func (d stoppingDisk) WriteAt(p []byte, off int64) (int, error) {
	if d.left--; d.left == 0 {
		d.stop()
	}
	if d.left < 0 {
		return 0, context.Canceled
	}
	return d.Disk.WriteAt(p, off)
}

// TestInterruptedAnywhere stops disk-prep after each of its writes: sector 0
// keeps a boot signature, and the next run finishes the work.
func TestInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	for writes := 1; ; writes++ {
		d := looptest.New(t, "interrupted", size, 512)
		talosDisk(t, d, 512)
		h := looptest.Host(t, d)
		ctx, stop := context.WithCancel(t.Context())
		_, err := prep.Run(ctx, &stopper{Host: h, left: writes, stop: stop}, api.DiskPrepSpec{System: want(d)}, &logs{})
		stop()
		sector := make([]byte, 512)
		f, openErr := os.Open(d.File)
		if openErr != nil {
			t.Fatal(openErr)
		}
		_, readErr := f.ReadAt(sector, 0)
		if err := errors.Join(readErr, f.Close()); err != nil {
			t.Fatal(err)
		}
		if sector[510] != 0x55 || sector[511] != 0xaa {
			t.Fatalf("after %d writes the disk has no boot signature", writes)
		}
		if _, err := prep.Run(t.Context(), h, api.DiskPrepSpec{System: want(d)}, &logs{}); err != nil {
			t.Fatalf("again after %d writes: %v", writes, err)
		}
		if err == nil {
			if writes < 8 {
				t.Errorf("only %d writes", writes)
			}
			return
		}
	}
}
