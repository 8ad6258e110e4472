package qemu

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ending is how a guest ended.
type ending string

const (
	endReset    ending = "guest-reset"    // from inside: SysRq b, a triple fault, a panic that reboots
	endShutdown ending = "guest-shutdown" // from inside: powered off
	endKilled   ending = "killed"         // the lab took the power away
	endFailed   ending = "failed"         // QEMU itself failed
)

// guest is one run of QEMU: one boot of a machine.
type guest struct {
	cmd     *exec.Cmd
	monitor *monitor
	done    chan struct{} // closed when QEMU is gone
	stderr  *lastBytes

	mu     sync.Mutex
	killed bool
	reason ending
	counts map[string]DiskCount // at a reset or shutdown from inside
	err    error
}

// startGuest starts QEMU; each line of the console goes to log. The process
// dies with this one.
func startGuest(binary string, args []string, log func(string)) (*guest, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("no socket for QEMU's monitor: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "qmp"), os.NewFile(uintptr(pair[1]), "qmp")
	defer theirs.Close()
	// The child's descriptor 3 is the monitor's socket. With -no-reboot a
	// reset ends QEMU, and the lab boots again as the machine was told last;
	// with -no-shutdown it ends when the lab has read what it counted.
	args = append(args, "-no-reboot", "-no-shutdown", "-chardev", "socket,id=monitor,fd=3", "-mon", "chardev=monitor,mode=control",
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")
	g := &guest{cmd: exec.Command(binary, args...), monitor: newMonitor(ours), done: make(chan struct{}), stderr: &lastBytes{}}
	g.cmd.ExtraFiles = []*os.File{theirs}
	g.cmd.Stderr = g.stderr
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	console, err := g.cmd.StdoutPipe()
	if err != nil {
		ours.Close()
		return nil, err
	}
	started := make(chan error)
	go g.run(started, console, log)
	if err := <-started; err != nil {
		ours.Close()
		return nil, fmt.Errorf("QEMU does not start: %w", err)
	}
	return g, nil
}

// run owns the process. The thread that starts it must live as long: the
// kernel sends the death signal when that thread ends, not the process.
func (g *guest) run(started chan<- error, console io.Reader, log func(string)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := g.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	defer close(g.done)
	var readers sync.WaitGroup
	readers.Go(func() { readLines(console, log) })
	readers.Go(g.watch)
	readers.Wait()
	err = g.cmd.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.killed:
		g.reason = endKilled
	case err != nil || g.reason == "":
		g.reason = endFailed
		g.err = fmt.Errorf("QEMU ended by itself: %w: %s", err, g.stderr)
	}
}

// watch follows the monitor to the guest's end.
func (g *guest) watch() {
	ended := make(chan ending, 1)
	var finishing sync.WaitGroup
	finishing.Go(func() { g.finish(ended) })
	g.monitor.listen(func(name, reason string) {
		if name != "SHUTDOWN" {
			return
		}
		select {
		case ended <- ending(reason):
		default: // the lab's own quit
		}
	})
	close(ended)
	finishing.Wait()
}

// finish reads what was counted when the guest has reset itself or is off,
// and ends QEMU.
func (g *guest) finish(ended <-chan ending) {
	if err := g.monitor.command("qmp_capabilities", nil, nil); err != nil {
		return // QEMU is gone
	}
	reason, ok := <-ended
	if !ok {
		return
	}
	counts, _ := g.monitor.counts() // whoever wants them misses them
	g.mu.Lock()
	g.reason, g.counts = reason, counts
	g.mu.Unlock()
	_ = g.monitor.command("quit", nil, nil) // it may go before it answers
}

// kill takes the power away and waits until QEMU is gone.
func (g *guest) kill() {
	g.mu.Lock()
	g.killed = true
	g.mu.Unlock()
	_ = g.cmd.Process.Kill() // it may have ended already
	<-g.done
}

// wait waits for the guest's end.
func (g *guest) wait(ctx context.Context) (ending, error) {
	select {
	case <-g.done:
	case <-ctx.Done():
		g.kill()
		return endKilled, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason, g.err
}

// cpu is the time on processors that QEMU used; it has ended.
func (g *guest) cpu() time.Duration {
	return g.cmd.ProcessState.UserTime() + g.cmd.ProcessState.SystemTime()
}

// readLines gives each line without the terminal's control characters.
func readLines(r io.Reader, log func(string)) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSpace(plain(line)); line != "" {
			log(line)
		}
		if err != nil {
			return
		}
	}
}

func plain(line string) string {
	var b strings.Builder
	escape := false
	for _, c := range strings.ToValidUTF8(line, "?") {
		switch {
		case c == 0x1b:
			escape = true
		case escape:
			escape = (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		case c >= ' ':
			b.WriteRune(c)
		}
	}
	return b.String()
}

// lastBytes keeps the end of what QEMU says.
type lastBytes struct {
	mu   sync.Mutex
	data []byte
}

// Write keeps the last 2 KiB.
func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	l.data = l.data[max(0, len(l.data)-2048):]
	return len(p), nil
}

// String is the kept end.
func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.data))
}
