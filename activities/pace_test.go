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
		{80, 2 * time.Second, 100 * time.Millisecond},
		{200, 5 * time.Second, 200 * time.Millisecond},
		{1000, 25 * time.Second, time.Second},
		{100_000, 100 * time.Second, 2 * time.Second},
	} {
		var p pace
		p.atWork.Store(c.atWork)
		require.Equal(t, c.beat, p.beat(run.HeartbeatTimeoutOf(int(c.atWork))), c.atWork)
		require.Equal(t, c.knock, p.knock(), c.atWork)
	}
	var p pace
	p.atWork.Store(1000)
	require.Equal(t, 10*time.Second, p.beat(run.HeartbeatTimeout), "a small lot beside a large one: two heartbeats may be lost")
}
