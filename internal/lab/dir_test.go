package lab_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab"
)

func TestASecondLabInADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	o := quick(t)
	o.Servers = 1
	f, err := lab.NewFleet(t.Context(), o)
	require.NoError(t, err)
	for name, base := range map[string]string{"other addresses": quick(t).Base, "the same addresses": o.Base} {
		second := o
		second.Base = base
		before, err := os.ReadFile(f.Path("lot.yaml"))
		require.NoError(t, err)
		_, err = lab.NewFleet(t.Context(), second)
		require.ErrorContains(t, err, fmt.Sprintf("another lab (process %d) runs in %s; end that lab, or start this one with another --dir", os.Getpid(), o.Dir), name)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
		require.DirExists(t, f.Path("images"), name)
		require.DirExists(t, f.Path("machines/lab-1"), name)
		after, err := os.ReadFile(f.Path("lot.yaml"))
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), name)
	}
	require.NoError(t, f.Close())
	start(t, o)
}

// TestALabThatCannotListenRemovesNothing: images and machines in its directory
// are somebody else's until it has made its own.
func TestALabThatCannotListenRemovesNothing(t *testing.T) {
	t.Parallel()
	first := quick(t)
	first.Servers = 1
	start(t, first)
	second := quick(t)
	second.Base, second.Servers = first.Base, 1
	require.NoError(t, os.MkdirAll(filepath.Join(second.Dir, "images"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(second.Dir, ".ironlot-lab"), nil, 0o600))
	_, err := lab.NewFleet(t.Context(), second)
	require.ErrorContains(t, err, "in use")
	require.DirExists(t, filepath.Join(second.Dir, "images"))
}

// envVictim is the directory of the lab that TestAKilledLab kills.
const envVictim = "IRONLOT_TEST_LAB_TO_KILL"

func TestAKilledLabDoesNotBlockItsDirectory(t *testing.T) {
	t.Parallel()
	o := quick(t)
	o.Servers = 1
	if dir := os.Getenv(envVictim); dir != "" { // the process that is killed
		o.Dir = dir
		_, err := lab.NewFleet(t.Context(), o)
		require.NoError(t, err)
		fmt.Println("runs")
		<-t.Context().Done()
		return
	}
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	victim.Env = append(os.Environ(), envVictim+"="+o.Dir)
	out, err := victim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, victim.Start())
	line := ""
	for lines := bufio.NewScanner(out); line != "runs" && lines.Scan(); {
		line = lines.Text()
	}
	require.Equal(t, "runs", line)
	_, err = lab.NewFleet(t.Context(), o)
	require.ErrorContains(t, err, fmt.Sprintf("another lab (process %d)", victim.Process.Pid))
	require.NoError(t, victim.Process.Kill())
	require.Error(t, victim.Wait())
	require.DirExists(t, filepath.Join(o.Dir, "machines"), "it could not clean up")
	start(t, o)
}
