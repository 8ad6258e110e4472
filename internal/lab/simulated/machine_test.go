package simulated

import (
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
	"github.com/ironlot/ironlot/internal/testenv"
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
	require.NoError(t, m.WaitState(testenv.Soon(t), want))
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
	require.NoError(t, m.WaitState(testenv.Soon(t), InRescue))
	boots := m.Boots()
	require.Len(t, boots, 2)
	require.NotEqual(t, boots[0].ID, boots[1].ID)
	require.NotEqual(t, boots[0].HostKey, boots[1].HostKey)
	require.Equal(t, hardware.BootRescue, boots[1].Type, "a reset boots as told last")
	require.NoDirExists(t, filepath.Join(m.opts.Dir, "ram", "1"), "RAM does not survive")
}

// TestServeGivesThePortBack is about a race that hung one boot of many
// thousands, when the next one could not listen.
func TestServeGivesThePortBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	addr := net.JoinHostPort(m.Address(), "2222")
	for range 3000 {
		ctx, cancel := context.WithCancel(t.Context())
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		require.NoError(t, err)
		served := make(chan struct{})
		go func() {
			defer close(served)
			(&sshServer{b: &boot{m: m, ctx: ctx}}).serve(listener)
		}()
		cancel()
		<-served
	}
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

func TestAPanicAndAPowerCut(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(o *Options) { o.Delivered = RAID1 })
	bootAs(t, m, hardware.BootRescue, InRescue)
	m.Panic()
	require.Equal(t, Hung, m.State())
	require.Contains(t, m.Console(), "kernel panic - not syncing")
	require.NoError(t, m.PowerOff())
	require.Equal(t, Off, m.State())
	m.Reset() // the button of a machine that is off starts it
	require.NoError(t, m.WaitState(testenv.Soon(t), InRescue))
}
