package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/history"
)

// historyJSON exports a run's history as `temporal workflow show -o json`
// does.
func historyJSON(t *testing.T, c client.Client, id string) []byte {
	t.Helper()
	out, err := history.Export(t.Context(), c, id, "")
	require.NoError(t, err)
	return out
}

// waitLong bounds waits for things that take seconds.
const waitLong = 2 * time.Minute
