//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
)

// child is a server that the benchmark runs.
type child struct {
	name    string
	cmd     *exec.Cmd
	logFile string
	exited  chan struct{} // closed when the process is gone
}

// startChild starts a server whose output goes to a file.
func startChild(name string, cmd *exec.Cmd, logFile string) (*child, error) {
	if err := launch(cmd, logFile); err != nil {
		return nil, err
	}
	c := &child{name: name, cmd: cmd, logFile: logFile, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended stands in its log
		close(c.exited)
	}()
	return c, nil
}

// until asks the server again and again until it answers.
func (c *child) until(ctx context.Context, answers func() error) error {
	for {
		err := answers()
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return fault.Retry("%s ended as soon as it was started: %s", c.name, logEnd(c.logFile))
		case <-ctx.Done():
			return fault.Retry("%s does not come up (see %s): %w", c.name, c.logFile, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop interrupts the server and waits for its end; one that does not end in
// time is killed.
func (c *child) stop() error {
	const most = 30 * time.Second
	_ = c.cmd.Process.Signal(os.Interrupt) // it may be gone already
	select {
	case <-c.exited:
		return nil
	case <-time.After(most):
		_ = c.cmd.Process.Kill()
		<-c.exited
		return fmt.Errorf("%s did not stop within %s and was killed", c.name, most)
	}
}

// logEnd is the last line of a log, for an error.
func logEnd(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "(its log cannot be read)"
	}
	return lastLine(data)
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
