package rescue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinesEndWithTheWait: what a caller keeps of a command's lines is its own
// once it has given up. The race detector looks on.
func TestLinesEndWithTheWait(t *testing.T) {
	t.Parallel()
	var kept int
	first, ended := make(chan struct{}), make(chan error)
	h := &handover{onLine: func([]byte) error {
		if kept++; kept == 1 {
			close(first)
		}
		return nil
	}}
	go func() {
		for {
			if err := h.give(nil); err != nil {
				ended <- err
				return
			}
		}
	}()
	<-first
	h.end()
	kept = -1
	require.ErrorIs(t, <-ended, errOver)
	require.Equal(t, -1, kept)
}
