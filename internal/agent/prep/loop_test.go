//go:build linux

package prep_test

import (
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/inventory"
	"github.com/ironlot/ironlot/internal/agent/looptest"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/agent/prep"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	mib  = 1 << 20
	size = 80 * mib
)

func digest(t *testing.T, d looptest.Device) string {
	t.Helper()
	f, err := os.Open(d.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, f); err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(uint64(sum.Sum32()), 16)
}

func want(d looptest.Device) run.Disk { return run.Disk{Serial: d.Serial, Size: uint64(d.Size)} }

func TestEveryLayoutBecomesBlank(t *testing.T) {
	t.Parallel()
	for _, sector := range []int{512, 4096} {
		for name, layout := range layouts(sector) {
			t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				serial := "prep-" + strings.Map(func(r rune) rune {
					if r == ' ' || r == '.' {
						return '-'
					}
					return r
				}, name)
				bytes := int64(size)
				if name == "xfs" {
					bytes = 320 * mib // mkfs.xfs takes no less
				}
				d := looptest.New(t, serial, bytes, sector)
				kept := looptest.New(t, serial+"-kept", 32*mib, 512)
				put(t, kept, 0, []byte(strings.Repeat("kept", 4096)))
				before := digest(t, kept)
				layout.fill(t, d)
				h := looptest.Host(t, d, kept)
				inv, err := inventory.Take(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				for _, kind := range layout.sees {
					if !slices.Contains(types(inv, serial), kind) {
						t.Errorf("the inventory sees %v, not %s", types(inv, serial), kind)
					}
				}
				becomesBlank(t, h, d)
				if digest(t, kept) != before {
					t.Error("the kept disk was written")
				}
			})
		}
	}
}

// becomesBlank prepares a disk, has other tools look at it, and prepares it
// again, which must not write.
func becomesBlank(t *testing.T, h host.Host, d looptest.Device) {
	t.Helper()
	spec := api.DiskPrepSpec{System: want(d)}
	done, err := prep.Run(t.Context(), h, spec, &logs{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(done.Blanked, []string{d.Serial}) {
		t.Errorf("blanked %v", done.Blanked)
	}
	out := looptest.Tool(t, "wipefs", "--noheadings", "--output", "TYPE", d.Path)
	for kind := range strings.FieldsSeq(out) {
		if kind != "gpt" && kind != "PMBR" {
			t.Errorf("wipefs sees %s", kind)
		}
	}
	looptest.Tool(t, "sgdisk", "--verify", d.Path)
	before := digest(t, d)
	rep := &logs{}
	if _, err := prep.Run(t.Context(), h, spec, rep); err != nil {
		t.Fatal(err)
	}
	if digest(t, d) != before {
		t.Error("the second run wrote to a blank disk")
	}
	if !rep.has("plan", "nothing to do") {
		t.Error("the second run does not say that there is nothing to do")
	}
}

func TestMountsAndSwapAreReleased(t *testing.T) {
	t.Parallel()
	system, second := looptest.New(t, "held-system", size, 512), looptest.New(t, "held-second", 64*mib, 512)
	looptest.Tool(t, "mkfs.ext4", "-q", "-F", system.Path)
	dir := t.TempDir()
	looptest.Tool(t, "mount", system.Path, dir)
	looptest.Tool(t, "mkdir", dir+"/a b")
	looptest.Tool(t, "mount", "--bind", dir, dir+"/a b")
	looptest.Tool(t, "mkswap", second.Path)
	looptest.Tool(t, "swapon", second.Path)
	h := looptest.Host(t, system, second)
	rep := &logs{}
	done, err := prep.Run(t.Context(), h, api.DiskPrepSpec{System: want(system), Secondary: []run.Disk{want(second)}}, rep)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(done.Released, []string{"swapoff " + second.Name, "unmount " + dir + "/a b", "unmount " + dir}) {
		t.Errorf("released %q", done.Released)
	}
	if !slices.Equal(done.Blanked, []string{system.Serial, second.Serial}) {
		t.Errorf("blanked %q", done.Blanked)
	}
}

// TestBusyMount has a file open on a mount: nothing may be erased below it.
func TestBusyMount(t *testing.T) {
	t.Parallel()
	d := looptest.New(t, "busy", size, 512)
	looptest.Tool(t, "mkfs.ext4", "-q", "-F", d.Path)
	dir := t.TempDir()
	looptest.Tool(t, "mount", d.Path, dir)
	f, err := os.Create(dir + "/open")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { looptest.Tool(t, "umount", dir) })
	defer f.Close()
	_, err = prep.Run(t.Context(), looptest.Host(t, d), api.DiskPrepSpec{System: want(d)}, &logs{})
	if err == nil {
		t.Fatal("a mount in use was released")
	}
	if out := looptest.Tool(t, "blkid", "-p", "-o", "value", "-s", "TYPE", d.Path); out != "ext4" {
		t.Errorf("the filesystem in use is gone: %q", out)
	}
}

func TestRefusalsWriteNothing(t *testing.T) {
	t.Parallel()
	kept := looptest.New(t, "refuse-kept", size, 512)
	d := looptest.New(t, "refuse-system", size, 512)
	talosDisk(t, kept, 512)
	looptest.Tool(t, "mkfs.ext4", "-q", "-F", d.Path)
	before := digest(t, d) + digest(t, kept)
	h := looptest.Host(t, kept, d)
	for name, spec := range map[string]api.DiskPrepSpec{
		"old Talos on the kept disk": {System: want(d)},
		"no such disk":               {System: run.Disk{Serial: "nowhere"}},
		"no identity":                {System: run.Disk{Name: d.Name, Size: uint64(d.Size)}},
		"other size":                 {System: run.Disk{Serial: d.Serial, Size: 1}},
		"twice":                      {System: want(d), Secondary: []run.Disk{want(d), want(kept)}},
	} {
		if _, err := prep.Run(t.Context(), h, spec, &logs{}); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	if digest(t, d)+digest(t, kept) != before {
		t.Error("a refusal wrote to a disk")
	}
	if _, err := prep.Run(t.Context(), h, api.DiskPrepSpec{System: want(d), Secondary: []run.Disk{want(kept)}}, &logs{}); err != nil {
		t.Errorf("with the old Talos handed over: %v", err)
	}
}

// TestPlanForLoops checks that the plan's steps name what a person loses.
func TestPlanForLoops(t *testing.T) {
	t.Parallel()
	d := looptest.New(t, "plan-talos", size, 512)
	talosDisk(t, d, 512)
	inv, err := inventory.Take(t.Context(), looptest.Host(t, d))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.DiskPrep(inv, api.DiskPrepSpec{System: want(d)})
	if err != nil {
		t.Fatal(err)
	}
	if text := p.String(); !strings.Contains(text, "partition 3 STATE xfs STATE") || !strings.Contains(text, "plan-talos") {
		t.Errorf("the plan does not say what is lost:\n%s", text)
	}
}
