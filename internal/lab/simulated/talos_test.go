package simulated

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// talosOf boots Talos and hands its store out.
func talosOf(t *testing.T, m *Machine, boots chan TalosBoot) TalosBoot {
	t.Helper()
	require.NoError(t, m.PowerOn(hardware.BootNormal, hardware.Rescue{}))
	select {
	case b := <-boots:
		return b
	case <-time.After(time.Minute):
		t.Fatalf("Talos did not boot, the machine is in state %s", m.State())
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
	store := m.boot.store()
	config, err := store.Load()
	require.NoError(t, err)
	require.Equal(t, "the config", string(config))
	require.NotEqual(t, store.Where(layout.Meta), store.Where(layout.State))
}

func TestADamagedStateIsAnError(t *testing.T) {
	t.Parallel()
	m, boots := newTalosMachine(t)
	writeImage(t, m, 1)
	require.NoError(t, m.PutStaleState(2, []byte("an old config")))
	p, ok := layout.Find(layout.Read(m.disks[1].f, m.disks[1].spec.Size), layout.State)
	require.True(t, ok)
	_, err := m.disks[1].f.WriteAt([]byte("X"), p.Offset+64) // in the config
	require.NoError(t, err)
	_, err = talosOf(t, m, boots).Store.Load()
	require.Error(t, err)
}

func TestTwoEphemeralsAreSeen(t *testing.T) {
	t.Parallel()
	m, boots := newTalosMachine(t)
	writeImage(t, m, 1)
	writeBlank(t, m, 2)
	require.NoError(t, talosOf(t, m, boots).Store.Save([]byte("the config")))
	copied, err := os.ReadFile(m.DiskPath(1))
	require.NoError(t, err)
	_, err = m.disks[1].f.WriteAt(copied, 0)
	require.NoError(t, err)
	require.True(t, talosOf(t, m, boots).TwoEphemerals)
}
