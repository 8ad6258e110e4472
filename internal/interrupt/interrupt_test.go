package interrupt

import (
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestContext: one signal after the other ends it; they are this process's.
func TestContext(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ignored := signal.Ignored(s)
		ctx, stop := Context()
		require.NoError(t, ctx.Err())
		if ignored { // as under nohup: it stays so
			stop()
			continue
		}
		require.NoError(t, syscall.Kill(syscall.Getpid(), s))
		<-ctx.Done()
		stop()
	}
}

// TestWhatIsIgnoredStaysSo: a program under nohup outlives its terminal.
func TestWhatIsIgnoredStaysSo(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, stop := Context()
	defer stop()
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGHUP))
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
	<-ctx.Done()
	require.True(t, signal.Ignored(syscall.SIGHUP))
}
