package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
)

func TestTemporalKeepsKeysAndValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l, err := New(&out, "json", "info")
	require.NoError(t, err)
	sdk := Temporal(l)
	sdk.Debug("hidden")
	sdk.Warn("careful", "Attempt", 3, "error", errors.New("cut"), "odd")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "careful", line["msg"])
	require.EqualValues(t, 3, line["Attempt"])
	require.Equal(t, "cut", line["error"])
	require.Equal(t, "odd", line["extra"])
}

func TestUnknownFormatAndLevelAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"xml", "info"}, {"json", "loud"}} {
		_, err := New(&bytes.Buffer{}, c[0], c[1])
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	}
	_, err := New(&bytes.Buffer{}, "console", "debug")
	require.NoError(t, err)
}
