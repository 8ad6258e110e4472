//go:build linux

package prep_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
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

func put(t *testing.T, d looptest.Device, off int64, p []byte) {
	t.Helper()
	f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(p, off)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

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

// table writes a GPT with partitions of 16 MiB that hold what fill says.
func table(t *testing.T, d looptest.Device, sector int, fill map[string][]byte, names ...string) {
	t.Helper()
	var parts []gpt.Partition
	for i, name := range names {
		off := int64(1+16*i) * mib
		parts = append(parts, gpt.Partition{Number: i + 1, Name: name, Type: gpt.NewGUID(), GUID: gpt.NewGUID(), Offset: off, Size: 16 * mib})
		put(t, d, off, fill[name])
	}
	head, tail, err := gpt.Encode(d.Size, sector, gpt.Table{DiskGUID: gpt.NewGUID(), Partitions: parts})
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, 0, head)
	put(t, d, d.Size-int64(len(tail)), tail)
}

func talosDisk(t *testing.T, d looptest.Device, sector int) {
	meta := []byte{0x5a, 0x4b, 0x3c, 0x2d}
	xfs := append([]byte("XFSB"), make([]byte, 508)...)
	copy(xfs[0x6c:], "STATE")
	table(t, d, sector, map[string][]byte{"META": meta, "STATE": xfs}, "EFI", "META", "STATE", "EPHEMERAL")
}

// md is a version 1 superblock.
func md(set string) []byte {
	b := make([]byte, 256)
	copy(b, "\xfc\x4e\x2b\xa9")
	binary.LittleEndian.PutUint32(b[4:], 1)
	copy(b[16:32], set)
	copy(b[32:64], "rescue:0")
	return b
}

// md090 is a version 0.90 superblock.
func md090(set string) []byte {
	b := make([]byte, 4096)
	copy(b, "\xfc\x4e\x2b\xa9")
	binary.LittleEndian.PutUint32(b[8:], 90)
	copy(b[20:24], set)
	copy(b[52:64], set)
	return b
}

// layouts are what a disk can hold before disk-prep, and signatures that an
// inventory must see in it.
func layouts(sector int) map[string]struct {
	fill func(t *testing.T, d looptest.Device)
	sees []string
} {
	type layout = struct {
		fill func(t *testing.T, d looptest.Device)
		sees []string
	}
	all := map[string]layout{
		"zeros":     {func(*testing.T, looptest.Device) {}, nil},
		"old talos": {func(t *testing.T, d looptest.Device) { talosDisk(t, d, sector) }, []string{"gpt", "talosmeta", "xfs"}},
		"garbage": {func(t *testing.T, d looptest.Device) {
			put(t, d, 0, bytes.Repeat([]byte{0xa5}, 3*mib))
			put(t, d, d.Size-3*mib, bytes.Repeat([]byte{0x5a}, 3*mib))
		}, nil},
		"backup table only": {func(t *testing.T, d looptest.Device) {
			talosDisk(t, d, sector)
			put(t, d, 0, make([]byte, 64<<10))
		}, []string{"gpt", "xfs"}},
		"ext4":       {func(t *testing.T, d looptest.Device) { looptest.Tool(t, "mkfs.ext4", "-q", "-F", d.Path) }, []string{"ext4"}},
		"xfs":        {func(t *testing.T, d looptest.Device) { looptest.Tool(t, "mkfs.xfs", "-q", "-f", d.Path) }, []string{"xfs"}},
		"swap":       {func(t *testing.T, d looptest.Device) { looptest.Tool(t, "mkswap", d.Path) }, []string{"swap"}},
		"md 0.90":    {func(t *testing.T, d looptest.Device) { put(t, d, d.Size&^65535-65536, md090("abcd")) }, []string{"linux_raid_member"}},
		"md 1.0":     {func(t *testing.T, d looptest.Device) { put(t, d, (d.Size/512-16)&^7*512, md("0123456789abcdef")) }, []string{"linux_raid_member"}},
		"md 1.1":     {func(t *testing.T, d looptest.Device) { put(t, d, 0, md("0123456789abcdef")) }, []string{"linux_raid_member"}},
		"md 1.2":     {func(t *testing.T, d looptest.Device) { put(t, d, 4096, md("0123456789abcdef")) }, []string{"linux_raid_member"}},
		"luks":       {func(t *testing.T, d looptest.Device) { put(t, d, 0, []byte("LUKS\xba\xbe")) }, []string{"crypto_LUKS"}},
		"luks2 rest": {func(t *testing.T, d looptest.Device) { put(t, d, 4*mib, []byte("SKUL\xba\xbe")) }, []string{"crypto_LUKS"}},
		"zfs": {func(t *testing.T, d looptest.Device) {
			put(t, d, d.Size-256<<10+128<<10+3*1024, []byte("\x0c\xb1\xba\x00\x00\x00\x00\x00"))
		}, []string{"zfs_member"}},
		"ex-member below a filesystem": {func(t *testing.T, d looptest.Device) {
			looptest.Tool(t, "mkfs.ext4", "-q", "-F", d.Path)
			put(t, d, (d.Size/512-16)&^7*512, md("0123456789abcdef"))
		}, []string{"ext4", "linux_raid_member"}},
		"members in partitions": {func(t *testing.T, d looptest.Device) {
			table(t, d, sector, nil, "boot", "root")
			put(t, d, mib+4096, md("0123456789abcdef"))
			put(t, d, (1+16+16)*mib-8192, md("fedcba9876543210"))
		}, []string{"gpt", "linux_raid_member"}},
		"lvm": {func(t *testing.T, d looptest.Device) {
			only := `devices { filter = [ "a|` + d.Path + `$|", "r|.*|" ] use_devicesfile = 0 }`
			looptest.Tool(t, "lvm", "pvcreate", "--config", only, "-ff", "-y", d.Path)
			looptest.Tool(t, "lvm", "vgcreate", "--config", only, "vg-"+d.Serial, d.Path)
		}, []string{"LVM2_member"}},
	}
	if sector == 512 {
		all["dos with logical partitions"] = layout{func(t *testing.T, d looptest.Device) {
			looptest.Tool(t, "sh", "-c", "printf 'label: dos\n,16M\n,,E\n,16M\n,32M\n' | sfdisk --quiet --no-reread --no-tell-kernel "+d.Path)
			out := looptest.Tool(t, "sh", "-c", "sfdisk -d "+d.Path+" | sed -n 's/.*start= *\\([0-9]*\\).*/\\1/p' | tail -1")
			var last int64
			for _, c := range out {
				last = last*10 + int64(c-'0')
			}
			put(t, d, last*512, []byte("XFSB"))
		}, []string{"dos", "xfs"}}
	}
	return all
}

func types(inv api.Inventory, serial string) []string {
	var out []string
	for _, d := range inv.Disks {
		if d.Serial != serial {
			continue
		}
		for _, s := range d.Signatures {
			out = append(out, s.Type)
		}
		for _, p := range d.Parts {
			for _, s := range p.Signatures {
				out = append(out, s.Type)
			}
		}
	}
	return out
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
