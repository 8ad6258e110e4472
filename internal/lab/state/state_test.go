package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/state"
)

func newDisk(t *testing.T, name string, parts ...layout.Part) state.Disk {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	const size = 64 * layout.MiB
	require.NoError(t, f.Truncate(size))
	if parts != nil {
		require.NoError(t, layout.Create(f, size, name, parts))
	}
	return state.Disk{File: f, Size: size, Name: name, Serial: name}
}

func names(d state.Disk) (all []string) {
	for _, p := range layout.Read(d, d.Size) {
		all = append(all, p.Name)
	}
	return all
}

func TestTheFirstMatchWins(t *testing.T) {
	t.Parallel()
	meta := layout.Part{Name: layout.Meta, Type: layout.TypeLinux, Size: layout.MiB}
	system, second := newDisk(t, "system", meta), newDisk(t, "second")
	order := []state.Disk{second, system}
	s := &state.Store{Disks: func() ([]state.Disk, error) { return order, nil }}

	config, err := s.Load()
	require.NoError(t, err)
	require.Nil(t, config)
	require.Equal(t, []string{layout.Meta}, names(system), "looking writes nothing")
	require.NoError(t, s.Save([]byte("new")))
	require.Equal(t, []string{layout.Meta, layout.State, layout.Ephemeral}, names(system))
	config, err = s.Load()
	require.NoError(t, err)
	require.Equal(t, "new", string(config))

	require.NoError(t, state.PutStale(second, []byte("old")))
	config, err = s.Load()
	require.NoError(t, err)
	require.Equal(t, "old", string(config), "a stale STATE takes the node over")
	require.Equal(t, "on second (second)", s.Where(layout.State))
	require.Equal(t, "on system (system)", s.Where(layout.Meta))
}

func TestDamage(t *testing.T) {
	t.Parallel()
	d := newDisk(t, "disk")
	require.NoError(t, state.PutStale(d, []byte("config")))
	p, ok := layout.Find(layout.Read(d, d.Size), layout.State)
	require.True(t, ok)
	_, err := d.WriteAt([]byte("C"), p.Offset+19+8+32)
	require.NoError(t, err)
	_, err = state.Read(d, p)
	require.ErrorContains(t, err, "damaged")
	_, err = d.WriteAt(make([]byte, 512), p.Offset)
	require.NoError(t, err)
	config, err := state.Read(d, p)
	require.NoError(t, err)
	require.Nil(t, config, "another filesystem has no config")
	require.ErrorContains(t, state.Write(d, p, make([]byte, 8<<20)), "no space")
}

func TestNoMeta(t *testing.T) {
	t.Parallel()
	d := newDisk(t, "disk")
	s := &state.Store{Disks: func() ([]state.Disk, error) { return []state.Disk{d}, nil }}
	require.ErrorContains(t, s.Save([]byte("x")), "META")
	require.Empty(t, names(d))
}
