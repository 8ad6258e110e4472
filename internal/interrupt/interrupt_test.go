package interrupt

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

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

// stubborn makes this test's process a program that does not stop.
const stubborn = "IRONLOT_TEST_STUBBORN"

// TestASecondSignalEndsAtOnce: nobody waits for a program that takes its time.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	if os.Getenv(stubborn) != "" {
		ctx, stop := Context()
		defer stop()
		fmt.Println("at work")
		<-ctx.Done()
		fmt.Println("stopping")
		select {}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestASecondSignalEndsAtOnce$")
	cmd.Env = append(os.Environ(), stubborn+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for _, want := range []string{"at work", "stopping"} {
		require.True(t, lines.Scan())
		require.Equal(t, want, lines.Text())
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	}
	// The handler is taken away right after the context is done: press on.
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err = <-ended:
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit))
			require.Equal(t, syscall.SIGINT, exit.Sys().(syscall.WaitStatus).Signal())
			return
		case <-time.After(100 * time.Millisecond):
			_ = cmd.Process.Signal(syscall.SIGINT)
		}
	}
}
