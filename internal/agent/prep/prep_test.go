package prep_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/prep"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// logs keeps what a job reports.
type logs struct {
	mu      sync.Mutex
	entries []api.LogEntry
}

func (l *logs) Progress(api.Progress) {}

func (l *logs) Log(e api.LogEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

func (l *logs) has(event, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.entries, func(e api.LogEntry) bool {
		return e.Event == event && strings.Contains(e.Text, text)
	})
}

// raid makes two disks with an array over both and a volume on it. Its tools
// take holders away as the real ones do.
func raid(t *testing.T) (*hosttest.Host, api.DiskPrepSpec) {
	t.Helper()
	a, b := hosttest.NewDisk(t, "sda", "A", 64<<20), hosttest.NewDisk(t, "sdb", "B", 64<<20)
	super := append([]byte("\xfc\x4e\x2b\xa9\x01\x00\x00\x00"), bytes.Repeat([]byte{7}, 200)...)
	for _, d := range []*hosttest.Disk{a, b} {
		d.Info.Holders = []api.Holder{
			{Kind: api.HolderLVM, Name: "vg0/root", Device: "md0"},
			{Kind: api.HolderMD, Name: "md0", Device: d.Info.Name},
		}
		d.Put(t, super, 4096)
	}
	h := hosttest.New(t, a, b)
	h.Inventory.Tools = []string{"mdadm", "lvm"}
	h.Tool = func(args ...string) (host.Output, error) {
		release(h, args[len(args)-1])
		return host.Output{Args: args}, nil
	}
	return h, api.DiskPrepSpec{System: a.Info.Identity(), Secondary: []run.Disk{b.Info.Identity()}}
}

func release(h *hosttest.Host, name string) {
	for _, d := range h.Disks {
		d.Info.Holders = slices.DeleteFunc(slices.Clone(d.Info.Holders), func(x api.Holder) bool {
			return x.Name == strings.TrimPrefix(name, "/dev/")
		})
	}
}

func lines(calls [][]string) []string {
	var out []string
	for _, c := range calls {
		out = append(out, strings.Join(c, " "))
	}
	return out
}

func TestTools(t *testing.T) {
	t.Parallel()
	h, spec := raid(t)
	rep := &logs{}
	done, err := prep.Run(t.Context(), h, spec, rep)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(h.Ran()); !slices.Equal(got, []string{"lvm lvchange --activate n vg0/root", "mdadm --stop /dev/md0"}) {
		t.Errorf("ran %q", got)
	}
	if !slices.Equal(done.Released, []string{"deactivate vg0/root", "stop md0"}) || !slices.Equal(done.Blanked, []string{"A", "B"}) ||
		len(done.Cleared) != 2 || !strings.HasPrefix(done.Cleared[0], "A: linux_raid_member") {
		t.Errorf("done: %+v", done)
	}
	for _, want := range []struct{ event, text string }{{"saw", "disk A"}, {"plan", "stop md0"}, {"ran", "mdadm --stop"}, {"did", "verified"}} {
		if !rep.has(want.event, want.text) {
			t.Errorf("the log does not hold %v", want)
		}
	}
}

// TestReassembled has udev bring the array back once.
func TestReassembled(t *testing.T) {
	t.Parallel()
	h, spec := raid(t)
	stops := 0
	h.Tool = func(args ...string) (host.Output, error) {
		if args[0] == "mdadm" {
			stops++
		}
		if args[0] == "lvm" || stops > 1 {
			release(h, args[len(args)-1])
		}
		return host.Output{Args: args}, nil
	}
	if _, err := prep.Run(t.Context(), h, spec, report.Discard{}); err != nil {
		t.Fatal(err)
	}
	if stops != 2 {
		t.Errorf("stopped %d times", stops)
	}
}

// TestStubbornHolder has a tool that always fails: nothing is written.
func TestStubbornHolder(t *testing.T) {
	t.Parallel()
	h, spec := raid(t)
	h.Tool = func(args ...string) (host.Output, error) {
		return host.Output{Args: args, Exit: 1, Tail: "in use"}, nil
	}
	rep := &logs{}
	_, err := prep.Run(t.Context(), h, spec, rep)
	if fault.ClassOf(err) != fault.NeedsOperator || !strings.Contains(err.Error(), "vg0/root") {
		t.Errorf("%v", err)
	}
	if !slices.ContainsFunc(rep.entries, func(e api.LogEntry) bool { return e.Exit != nil && *e.Exit == 1 && e.Output == "in use" }) {
		t.Error("the log does not tell how the tool ended")
	}
	for _, d := range h.Disks {
		if len(d.Ops()) > 0 {
			t.Errorf("disk %s was written: %v", d.Info.Name, d.Ops())
		}
	}
}

func TestMissingTool(t *testing.T) {
	t.Parallel()
	h, spec := raid(t)
	h.Inventory.Tools = nil
	_, err := prep.Run(t.Context(), h, spec, report.Discard{})
	if fault.ClassOf(err) != fault.NeedsOperator || !strings.Contains(err.Error(), "mdadm") || !strings.Contains(err.Error(), "lvm") {
		t.Errorf("%v", err)
	}
	if len(h.Ran()) > 0 || len(h.Disks[0].Ops()) > 0 {
		t.Error("something was done before the tools were looked for")
	}
}

// TestNamesSwap has the kernel swap the names of the two disks after the
// plan: the right disk is written all the same, or none.
func TestNamesSwap(t *testing.T) {
	t.Parallel()
	a, b := hosttest.NewDisk(t, "sda", "A", 64<<20), hosttest.NewDisk(t, "sdb", "B", 64<<20)
	b.Put(t, []byte("precious"), 2<<20)
	h := &swapping{Host: hosttest.New(t, a, b)}
	done, err := prep.Run(t.Context(), h, api.DiskPrepSpec{System: a.Info.Identity()}, report.Discard{})
	if err != nil || !slices.Equal(done.Blanked, []string{"A"}) {
		t.Errorf("%+v, %v", done, err)
	}
	if len(b.Ops()) > 0 {
		t.Errorf("the kept disk was written: %v", b.Ops())
	}
}

// swapping swaps the disks' names when the first inventory is taken.
type swapping struct {
	*hosttest.Host
	boots int
}

func (s *swapping) Topology(ctx context.Context) ([]api.Disk, error) {
	if s.boots++; s.boots == 2 {
		s.Disks[0].Info.Name, s.Disks[1].Info.Name = s.Disks[1].Info.Name, s.Disks[0].Info.Name
	}
	return s.Host.Topology(ctx)
}

// TestWritesThatVanish has a disk that takes writes and forgets them.
func TestWritesThatVanish(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "sda", "A", 64<<20)
	d.Put(t, []byte("XFSB"), 0)
	d.Corrupt = func(p []byte, off int64) {
		if off == 0 && len(p) >= 4 {
			copy(p, "XFSB")
		}
	}
	_, err := prep.Run(t.Context(), hosttest.New(t, d), api.DiskPrepSpec{System: d.Info.Identity()}, report.Discard{})
	if fault.ClassOf(err) != fault.NeedsOperator || !strings.Contains(err.Error(), "not blank after") {
		t.Errorf("%v", err)
	}
}

// TestTheInsideOfASecondaryDisk: what no table shows any more is zeroed too,
// so that nobody's old filesystem is where Talos puts a volume. The system
// disk's inside is left to the write phase.
func TestTheInsideOfASecondaryDisk(t *testing.T) {
	t.Parallel()
	const hidden = 40 << 20 // far from every table and signature
	for name, set := range map[string]func(*hosttest.Disk){
		"discard":       func(*hosttest.Disk) {},
		"lying discard": func(d *hosttest.Disk) { d.LyingDiscard = true },
		"write-zeroes":  func(d *hosttest.Disk) { d.Method = "write-zeroes" },
		"written":       func(d *hosttest.Disk) { d.Method = "written" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, spec := raid(t)
			set(h.Disks[1])
			old := bytes.Repeat([]byte("old filesystem "), 1000)
			for _, d := range h.Disks {
				d.Put(t, old, hidden)
			}
			rep := &logs{}
			_, err := prep.Run(t.Context(), h, spec, rep)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Disks[1].Get(t, hidden, int64(len(old))); !image.IsZero(got) {
				t.Error("the second disk still holds what lay on it")
			}
			if got := h.Disks[0].Get(t, hidden, int64(len(old))); !bytes.Equal(got, old) {
				t.Error("the system disk was zeroed by disk-prep")
			}
			if lying := rep.has("saw", "zeros are written instead"); lying != h.Disks[1].LyingDiscard {
				t.Errorf("a device that keeps what it discards: reported %v", lying)
			}

			h.Disks[1].Put(t, old, hidden) // behind a table that is blank already
			if _, err := prep.Run(t.Context(), h, spec, rep); err != nil {
				t.Fatal(err)
			}
			if got := h.Disks[1].Get(t, hidden, int64(len(old))); !image.IsZero(got) || !rep.has("saw", "old data that no table shows") {
				t.Error("a blank table hid old data")
			}

			before := len(h.Disks[1].Ops())
			if _, err := prep.Run(t.Context(), h, spec, &logs{}); err != nil || len(h.Disks[1].Ops()) != before {
				t.Errorf("a second run touched the blank disk: %v", err)
			}
		})
	}
}
