//go:build !race

package write_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/state"
	"github.com/ironlot/ironlot/internal/agent/write"
	"github.com/ironlot/ironlot/internal/fault"
)

// TestStateEveryFailure has operations fail: each that touches the tables, at
// the beginning and at the end, and some of those between.
func TestStateEveryFailure(t *testing.T) {
	t.Parallel()
	attempt := func(t *testing.T, fail int, cancel bool) int {
		h, d, _, spec := newState(t, 512, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ops := 0
		d.Before = func(hosttest.Op) error {
			ops++
			switch {
			case ops-1 != fail:
				return nil
			case cancel:
				stop()
				return nil
			}
			return syscall.EIO
		}
		_, err := write.Run(ctx, h, spec, report.Discard{})
		if err != nil && (strings.Contains(err.Error(), canary) || !errors.Is(err, syscall.EIO) && !errors.Is(err, context.Canceled)) {
			t.Errorf("operation %d: %v", fail, err)
		}
		want := withState
		switch {
		case err != nil && fail == 0 && !cancel:
			want = "STATE" // of the older Talos: nothing was written yet
		case err != nil:
			want = ""
		}
		if got := labels(t, d); got != want || !signed(t, d) {
			t.Errorf("operation %d: the disk shows %q, want %q (%v)", fail, got, want, err)
		}
		d.Before = nil
		if _, err := write.Run(t.Context(), h, spec, report.Discard{}); err != nil || !bytes.Equal(configOn(t, d), stateConfig()) {
			t.Errorf("after operation %d failed, the next attempt: %v", fail, err)
		}
		return ops
	}
	total := attempt(t, -1, false)
	if total < 10 || total > 60 {
		t.Fatalf("%d operations", total)
	}
	for n := range total {
		if n > 2 && n < total-7 && n%8 != 0 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			attempt(t, n, n%2 == 0)
		})
	}
}

// TestStateDamage has the disk read back something else in STATE, and in the
// table's second copy: nothing that looks like Talos is left.
func TestStateDamage(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int64{"config": 14*mib + 4096, "table": stateDisk - 512} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, d, _, spec := newState(t, 512, nil)
			d.Corrupt = func(p []byte, off int64) {
				if i := at - off; i >= 0 && i < int64(len(p)) {
					p[i] ^= 1
				}
			}
			_, err := write.Run(t.Context(), h, spec, report.Discard{})
			if fault.ClassOf(err) != fault.NeedsOperator || labels(t, d) != "" || !signed(t, d) {
				t.Errorf("%v; the disk shows %q", err, labels(t, d))
			}
		})
	}
}

// TestStateRefused: nothing is written.
func TestStateRefused(t *testing.T) {
	t.Parallel()
	retable := func(raw []byte, edit func(*gpt.Table)) {
		table, err := gpt.Parse(bytes.NewReader(raw), stateImage, 512)
		if err != nil {
			t.Fatal(err)
		}
		edit(table)
		head, _, err := gpt.Encode(stateImage, 512, *table)
		if err != nil {
			t.Fatal(err)
		}
		copy(raw, head)
	}
	for _, tt := range []struct {
		name string
		disk uint64
		edit func(raw []byte)
		spec func(*api.WriteSpec)
		want string
	}{
		{name: "small disk", disk: 320 * mib, want: "it is too small"},
		{name: "its own STATE", want: "has a partition STATE of its own", edit: func(raw []byte) {
			retable(raw, func(t *gpt.Table) { t.Partitions[2].Name = "STATE" })
		}},
		{name: "no META", want: "ends with META", edit: func(raw []byte) {
			retable(raw, func(t *gpt.Table) { t.Partitions[3].Name = "ROOT" })
		}},
		{name: "empty", want: "is empty", spec: func(s *api.WriteSpec) { s.State.Config = nil }},
		{name: "too long", want: "at most", spec: func(s *api.WriteSpec) {
			s.State.Config = bytes.Repeat([]byte(canary), state.Capacity)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, d, _, spec := newState(t, 512, tt.edit)
			if tt.disk > 0 {
				small := hosttest.NewDisk(t, "sdb", "S2", int64(tt.disk))
				h.Disks, spec.System, d = append(h.Disks, small), small.Info.Identity(), small
			}
			if tt.spec != nil {
				tt.spec(&spec)
			}
			_, err := write.Run(t.Context(), h, spec, report.Discard{})
			f, _ := fault.As(err)
			if f == nil || f.Class != fault.NeedsOperator || !strings.Contains(f.Message+f.Remedy, tt.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			untouched(t, d)
		})
	}
}
