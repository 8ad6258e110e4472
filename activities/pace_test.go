package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

// TestPaceSharesWhatAllMayDo: few go fast, many keep to the rate together, and
// a dead worker is noticed however many there are.
func TestPaceSharesWhatAllMayDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		atWork      int64
		beat, knock time.Duration
	}{
		{0, 2 * time.Second, 100 * time.Millisecond},
		{100, 2 * time.Second, 100 * time.Millisecond},
		{250, 5 * time.Second, 250 * time.Millisecond},
		{1000, 10 * time.Second, time.Second},
		{100_000, 10 * time.Second, 2 * time.Second},
	} {
		var p pace
		p.atWork.Store(c.atWork)
		require.Equal(t, c.beat, p.beat(), c.atWork)
		require.Equal(t, c.knock, p.knock(), c.atWork)
	}
	require.Less(t, 2*beatSlowest, run.HeartbeatTimeout, "one heartbeat may be lost")
}
