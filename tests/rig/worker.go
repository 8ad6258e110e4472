package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/stretchr/testify/require"
)

// Worker is a worker's process.
type Worker struct {
	r    *Rig
	cmd  *exec.Cmd
	done chan struct{}
}

// Worker starts a worker. It ends with the test at the latest.
func (r *Rig) Worker() *Worker {
	r.t.Helper()
	log, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(r.t, err)
	defer log.Close()
	w := &Worker{r: r, cmd: exec.Command(filepath.Join(r.bin.Dir, "worker"), "--agents", r.bin.Dir, "--provider-rate", "100", "--log-level", "debug"), done: make(chan struct{})}
	w.cmd.Env = append(r.Fleet.Environment(), "HOME="+r.dir, "PATH="+os.Getenv("PATH"), "IRONLOT_IDENTITY="+r.identityFile,
		"TEMPORAL_ADDRESS="+r.Proxy.addr, "TEMPORAL_NAMESPACE="+r.Namespace)
	w.cmd.Stdout, w.cmd.Stderr = log, log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(r.t, w.cmd.Start())
	go func() {
		_ = w.cmd.Wait() // how it ends is the test's doing
		close(w.done)
	}()
	r.t.Cleanup(w.Kill)
	return w
}

// Kill ends the worker with SIGKILL.
func (w *Worker) Kill() {
	_ = w.cmd.Process.Kill() // it may be gone already
	<-w.done
}

// Freeze stops the worker with SIGSTOP, Thaw lets it go on.
func (w *Worker) Freeze() { require.NoError(w.r.t, w.cmd.Process.Signal(syscall.SIGSTOP)) }

// Thaw lets a frozen worker go on.
func (w *Worker) Thaw() { require.NoError(w.r.t, w.cmd.Process.Signal(syscall.SIGCONT)) }

// Alive reports whether the worker's process is there.
func (w *Worker) Alive() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}
