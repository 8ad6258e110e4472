package simulated

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

const imageSize = 16 * layout.MiB

func newMachine(t *testing.T, change ...func(*Options)) *Machine {
	t.Helper()
	o := Options{
		Name:    "one",
		Address: fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(250)),
		Dir:     filepath.Join(t.TempDir(), "machine"),
		Disks: []DiskSpec{
			{Serial: "A", Model: "LAB DISK", Size: 64 * layout.MiB}, {Serial: "B", Model: "LAB DISK", Size: 64 * layout.MiB},
		},
	}
	for _, c := range change {
		c(&o)
	}
	m, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// writeImage puts a Talos image on a disk, by a hand from outside.
func writeImage(t *testing.T, m *Machine, slot int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.raw")
	require.NoError(t, images.Build(path, images.Spec{Size: imageSize, Seed: 1}))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = m.disks[slot-1].f.WriteAt(data, 0)
	require.NoError(t, err)
}

// writeBlank puts an empty partition table on a disk.
func writeBlank(t *testing.T, m *Machine, slot int) {
	t.Helper()
	d := m.disks[slot-1]
	require.NoError(t, layout.Create(d.f, d.spec.Size, "blank", nil))
}

func bootAs(t *testing.T, m *Machine, as hardware.BootType, want State) {
	t.Helper()
	require.NoError(t, m.PowerOn(as, hardware.Rescue{User: "rescue"}))
	require.NoError(t, m.WaitState(t.Context(), want))
}

func TestFirmware(t *testing.T) {
	t.Parallel()
	image := func(slot int) func(*testing.T, *Machine) {
		return func(t *testing.T, m *Machine) { writeImage(t, m, slot) }
	}
	blank := func(slot int) func(*testing.T, *Machine) {
		return func(t *testing.T, m *Machine) { writeBlank(t, m, slot) }
	}
	for name, c := range map[string]struct {
		delivered Delivered
		write     []func(*testing.T, *Machine)
		as        hardware.BootType
		want      State
	}{
		"zeros boot not even rescue":             {"", nil, hardware.BootRescue, NoBoot},
		"one disk of zeros stops the netboot":    {"", []func(*testing.T, *Machine){image(1)}, hardware.BootRescue, NoBoot},
		"one disk of zeros stops the disk":       {"", []func(*testing.T, *Machine){image(1)}, hardware.BootNormal, NoBoot},
		"blank tables let rescue boot":           {"", []func(*testing.T, *Machine){blank(1), blank(2)}, hardware.BootRescue, InRescue},
		"blank tables boot nothing else":         {"", []func(*testing.T, *Machine){blank(1), blank(2)}, hardware.BootNormal, NoBoot},
		"Talos on the first disk":                {"", []func(*testing.T, *Machine){image(1), blank(2)}, hardware.BootNormal, InTalos},
		"Talos on the second disk":               {"", []func(*testing.T, *Machine){blank(1), image(2)}, hardware.BootNormal, InTalos},
		"the delivered system":                   {RAID1, nil, hardware.BootNormal, InOS},
		"the delivered system with LVM":          {LVM, nil, hardware.BootNormal, InOS},
		"rescue on a delivered machine":          {RAID1, nil, hardware.BootRescue, InRescue},
		"Talos beside half of a delivered array": {RAID1, []func(*testing.T, *Machine){image(1)}, hardware.BootNormal, InTalos},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, func(o *Options) { o.Delivered = c.delivered })
			for _, write := range c.write {
				write(t, m)
			}
			bootAs(t, m, c.as, c.want)
		})
	}
}

func TestABootIsNewEveryTime(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered = RAID1 })
	bootAs(t, m, hardware.BootRescue, InRescue)
	m.Reset()
	require.NoError(t, m.WaitState(t.Context(), InRescue))
	boots := m.Boots()
	require.Len(t, boots, 2)
	require.NotEqual(t, boots[0].ID, boots[1].ID)
	require.NotEqual(t, boots[0].HostKey, boots[1].HostKey)
	require.Equal(t, hardware.BootRescue, boots[1].Type, "a reset boots as told last")
	require.NoDirExists(t, filepath.Join(m.opts.Dir, "ram", "1"), "RAM does not survive")
}

func TestNamesSwapBySeed(t *testing.T) {
	t.Parallel()
	names := func(seed uint64) []string {
		m := newMachine(t, func(o *Options) { o.Delivered, o.SwapNames, o.Seed = RAID1, true, seed })
		var seen []string
		for range 8 {
			bootAs(t, m, hardware.BootRescue, InRescue)
			seen = append(seen, m.boot.names[0])
		}
		return seen
	}
	first := names(7)
	require.Contains(t, first, "sda")
	require.Contains(t, first, "sdb")
	require.Equal(t, first, names(7))
}

func TestARebootCanBeIgnored(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered = RAID1 })
	bootAs(t, m, hardware.BootNormal, InOS)
	m.SetFaults(Faults{IgnoreReboots: 1})
	require.NoError(t, m.PowerOn(hardware.BootRescue, hardware.Rescue{}))
	require.Equal(t, InOS, m.State())
	require.Len(t, m.Boots(), 1)
	bootAs(t, m, hardware.BootRescue, InRescue)
}

func TestRescueMayNeverComeUp(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered, o.Faults.RescueNeverUp = RAID1, true })
	bootAs(t, m, hardware.BootRescue, Hung)
	_, err := net.DialTimeout("tcp", m.Address()+":2222", time.Second)
	require.Error(t, err)
}

func TestNothingIsWrittenAfterAReset(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered = RAID1 })
	bootAs(t, m, hardware.BootRescue, InRescue)
	h := &rescueHost{b: m.boot, root: true}
	h.b.runTool([]string{"mdadm", "--stop", "/dev/md127", "/dev/md126"})
	d, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	_, err = d.WriteAt(make([]byte, 512), 8<<20)
	require.NoError(t, err)

	m.Reset()
	before, err := os.ReadFile(m.DiskPath(1))
	require.NoError(t, err)
	_, err = d.WriteAt([]byte("too late"), 0)
	require.ErrorIs(t, err, errGone)
	_, err = d.Zero(t.Context(), 0, 4096)
	require.ErrorIs(t, err, errGone)
	require.ErrorIs(t, d.Sync(), errGone)
	_, err = d.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, errGone)
	after, err := os.ReadFile(m.DiskPath(1))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, d.Close())
	require.EqualValues(t, 512, m.Boots()[0].Disks[0].BytesWritten)
	require.Zero(t, m.Boots()[0].Disks[1])
}

func TestTheMachineResetsItselfInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered, o.Faults.ResetAfterWrite = RAID1, 8192 })
	bootAs(t, m, hardware.BootRescue, InRescue)
	first := m.boot
	h := &rescueHost{b: first, root: true}
	h.b.runTool([]string{"mdadm", "--stop", "/dev/md127", "/dev/md126"})
	d, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	data := bytes.Repeat([]byte("data"), 1024)
	for _, quiet := range [][]byte{data, make([]byte, 4096), make([]byte, 4096)} {
		_, err = d.WriteAt(quiet, 0)
		require.NoError(t, err)
	}
	_, err = d.WriteAt(data, 4096)
	require.ErrorIs(t, err, errGone)
	<-first.done
	require.Eventually(t, func() bool { return len(m.Boots()) == 2 }, 10*time.Second, time.Millisecond)
}

func TestOneWriterADisk(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered = LVM })
	bootAs(t, m, hardware.BootRescue, InRescue)
	h := &rescueHost{b: m.boot, root: true}

	_, err := h.OpenDisk(t.Context(), "sda", true)
	require.Error(t, err, "the arrays are up")
	require.Equal(t, 1, m.Boots()[0].Disks[0].Refused)

	disks, err := h.Topology(t.Context())
	require.NoError(t, err)
	require.Len(t, disks[0].Holders, 3)
	require.Equal(t, "vg0/root", disks[0].Holders[0].Name, "outermost first")
	exit, _ := h.b.runTool([]string{"mdadm", "--stop", "/dev/md126"})
	require.NotZero(t, exit, "a volume is active on it")
	for _, tool := range [][]string{{"lvm", "lvchange", "-an", "vg0/root"}, {"mdadm", "--stop", "/dev/md126"}, {"mdadm", "--stop", "/dev/md127"}} {
		out, err := h.Run(t.Context(), tool...)
		require.NoError(t, err)
		require.Zero(t, out.Exit, out.Tail)
	}
	first, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	_, err = h.OpenDisk(t.Context(), "sda", true)
	require.Error(t, err, "one writer")
	require.NoError(t, first.Close())
	require.Error(t, first.Close())
	again, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	require.NoError(t, again.Close())

	bootAs(t, m, hardware.BootRescue, InRescue)
	require.Len(t, m.boot.holders(0), 3, "the superblocks are still there, so the arrays come back")
}

func TestDiskFaults(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) {
		o.Delivered = RAID1
		o.Faults = Faults{WriteErrorDisk: 1, WriteErrorAt: 10_000, LyingDiscard: true, RAM: 1 << 20}
	})
	bootAs(t, m, hardware.BootRescue, InRescue)
	h := &rescueHost{b: m.boot, root: true}
	h.b.runTool([]string{"mdadm", "--stop", "/dev/md127", "/dev/md126"})
	d, err := h.OpenDisk(t.Context(), "sda", true)
	require.NoError(t, err)
	defer d.Close()
	_, err = d.WriteAt(make([]byte, 4096), 8192)
	require.Error(t, err)
	_, err = d.WriteAt([]byte{1}, 0)
	require.NoError(t, err)
	_, err = d.Zero(t.Context(), 0, 4096)
	require.NoError(t, err)
	got := make([]byte, 1)
	_, err = d.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, []byte{1}, got, "the discard lied")
	_, err = d.ReadDirectAt(make([]byte, 100), 0)
	require.Error(t, err, "not aligned")

	free, err := h.RAMFree()
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, free)
	require.NoError(t, os.WriteFile(filepath.Join(h.RAMDir(), "file"), make([]byte, 1<<18), 0o600))
	free, err = h.RAMFree()
	require.NoError(t, err)
	require.Less(t, free, uint64(1<<20-1<<18+1))
}

// talosOf boots Talos and hands its store out.
func talosOf(t *testing.T, m *Machine, boots chan TalosBoot) TalosBoot {
	t.Helper()
	require.NoError(t, m.PowerOn(hardware.BootNormal, hardware.Rescue{}))
	select {
	case b := <-boots:
		return b
	case <-t.Context().Done():
		t.Fatal("Talos did not boot")
		return TalosBoot{}
	}
}

func newTalosMachine(t *testing.T, change ...func(*Options)) (*Machine, chan TalosBoot) {
	t.Helper()
	boots := make(chan TalosBoot, 1)
	m := newMachine(t, append(change, func(o *Options) {
		o.Talos = func(ctx context.Context, b TalosBoot) error {
			boots <- b
			<-ctx.Done()
			return nil
		}
	})...)
	return m, boots
}

func TestTalosKeepsItsConfigOnState(t *testing.T) {
	t.Parallel()
	m, boots := newTalosMachine(t)
	writeBlank(t, m, 1)
	writeImage(t, m, 2)

	first := talosOf(t, m, boots)
	config, err := first.Store.Load()
	require.NoError(t, err)
	require.Nil(t, config)
	require.NoError(t, first.Store.Save([]byte("the config")))

	parts := layout.Read(m.disks[1].f, m.disks[1].spec.Size)
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{"EFI", "BIOS", "BOOT", "META", "STATE", "EPHEMERAL"}, names)
	require.Equal(t, parts[3].Offset+parts[3].Size, parts[4].Offset, "STATE is right behind META")
	require.Greater(t, parts[5].Size, int64(40*layout.MiB), "EPHEMERAL fills the disk")
	require.Empty(t, layout.Read(m.disks[0].f, m.disks[0].spec.Size))

	second := talosOf(t, m, boots)
	config, err = second.Store.Load()
	require.NoError(t, err)
	require.Equal(t, "the config", string(config))
	require.False(t, second.TwoEphemerals)
	require.NoError(t, second.Store.Save([]byte("another")))
	require.ErrorIs(t, first.Store.Save([]byte("from the boot before")), errGone)
	got, err := m.StateConfig(t.Context())
	require.NoError(t, err)
	require.Equal(t, "another", string(got))
}

func TestAStaleStateOnAnotherDiskTakesOver(t *testing.T) {
	t.Parallel()
	m, boots := newTalosMachine(t)
	writeImage(t, m, 1)
	require.NoError(t, m.PutStaleState(2, []byte("an old config")))
	config, err := talosOf(t, m, boots).Store.Load()
	require.NoError(t, err)
	require.Equal(t, "an old config", string(config))
}

func TestTheImageOnBothDisks(t *testing.T) {
	t.Parallel()
	m, boots := newTalosMachine(t, func(o *Options) { o.SwapNames = true })
	writeImage(t, m, 1)
	writeImage(t, m, 2)
	first := talosOf(t, m, boots)
	require.NoError(t, first.Store.Save([]byte("the config")))
	metaAt := m.boot.order[0]
	// As seen on the real one: STATE is found where it was, META on whatever
	// disk comes first.
	for m.boot.order[0] == metaAt {
		talosOf(t, m, boots)
	}
	store := &Store{b: m.boot}
	config, err := store.Load()
	require.NoError(t, err)
	require.Equal(t, "the config", string(config))
	meta, _, _ := store.find(layout.Meta)
	state, _, _ := store.find(layout.State)
	require.NotEqual(t, meta.slot, state.slot)
}

func TestADamagedStateIsAnError(t *testing.T) {
	t.Parallel()
	m, boots := newTalosMachine(t)
	writeImage(t, m, 1)
	require.NoError(t, m.PutStaleState(2, []byte("an old config")))
	p, ok := layout.Find(layout.Read(m.disks[1].f, m.disks[1].spec.Size), layout.State)
	require.True(t, ok)
	_, err := m.disks[1].f.WriteAt([]byte("X"), p.Offset+int64(len(stateMagic))+8+32)
	require.NoError(t, err)
	_, err = talosOf(t, m, boots).Store.Load()
	require.Error(t, err)
}

func TestSplitWords(t *testing.T) {
	t.Parallel()
	words, err := splitWords(`sudo -k -p '' -- '/home/a b/it'\''s' x`)
	require.NoError(t, err)
	require.Equal(t, []string{"sudo", "-k", "-p", "", "--", "/home/a b/it's", "x"}, words)
	for _, bad := range []string{"a; b", "a $(b)", "a | b", "'open", "a > b", "a `b`"} {
		_, err := splitWords(bad)
		require.Error(t, err, bad)
	}
}
