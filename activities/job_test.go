package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
)

// TestAConnectionThatKeepsBreaking: it does not keep a phase busy for ever.
func TestAConnectionThatKeepsBreaking(t *testing.T) {
	t.Parallel()
	in := run.PhaseInput{Node: run.Node{ServerName: "metal-1"}}
	err := cutOff(t.Context(), nil, in, time.Now().Add(-time.Second), rescue.ErrTransport)
	require.ErrorIs(t, err, rescue.ErrTransport)
	require.ErrorContains(t, err, "the connection to server metal-1 kept breaking")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}
