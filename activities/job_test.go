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

// TestTheTryIsTold: from the second job on every word says which one it is.
func TestTheTryIsTold(t *testing.T) {
	t.Parallel()
	b := &beat{pace: &pace{}}
	b.tries(1)
	b.step("write the image")
	require.Zero(t, b.progress.Try)
	b.news = false
	b.tries(2)
	b.step("write the image")
	require.Equal(t, 2, b.progress.Try)
	require.True(t, b.news, "it is worth a heartbeat")
}
