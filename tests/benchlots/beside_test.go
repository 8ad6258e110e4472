//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatTookTheCoresBeside(t *testing.T) {
	t.Parallel()
	measured := []*process{{samples: []sample{{cpu: 10}, {cpu: 12}, {cpu: 40}}}, {samples: []sample{{cpu: 5}, {cpu: 25}}}, {}}
	require.Equal(t, beside{Others: 15, Stolen: 3}, besideOf(cores{busy: 100, stolen: 1}, cores{busy: 165, stolen: 4}, measured))
	require.Equal(t, beside{}, besideOf(cores{busy: 100}, cores{busy: 149.9}, measured))
}

func TestCoresAreRead(t *testing.T) {
	t.Parallel()
	now, err := coresNow()
	require.NoError(t, err)
	require.Positive(t, now.busy)
}
