package flock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/flock"
)

func TestTry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := flock.Try(path)
	require.NoError(t, err)
	_, err = first.WriteString("kept")
	require.NoError(t, err)
	_, err = flock.Try(path)
	require.ErrorIs(t, err, flock.ErrHeld)
	require.NoError(t, first.Close())
	again, err := flock.Try(path)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))

	_, err = flock.Try(filepath.Join(path, "below-a-file"))
	require.Error(t, err)
	require.NotErrorIs(t, err, flock.ErrHeld)
}
