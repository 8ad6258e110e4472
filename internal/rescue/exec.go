package rescue

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/fault"
)

// Bounds on what a remote command may send.
const (
	maxLine = 16 << 20 // bytes: the inventory of a large machine is far smaller
	maxTail = 4 << 10  // bytes of standard error that are kept
)

// command is one remote command.
type command struct {
	line   string             // what the remote shell gets; holds no secret
	name   string             // for people
	stdin  []byte             // may hold a secret
	open   <-chan struct{}    // standard input is closed when this is; nil: at once
	onLine func([]byte) error // gets each line of standard output
}

// exec runs a command and waits. It returns a *CommandError when the command
// ran and failed, ErrTransport when the connection did, and onLine's error.
// When the context ends, so does the wait, at once, and onLine is not called
// any more.
func (s *Session) exec(ctx context.Context, c command) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(ctx, s.target.addr(), c.name)
	}
	lines := &handover{onLine: c.onLine}
	c.onLine = lines.give
	ended := make(chan error, 1)
	channel := make(chan *ssh.Session, 1)
	go func() { ended <- s.execNow(c, channel) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		lines.end()
		go closeChannel(channel, ended)
		return gaveUp(ctx, s.target.addr(), c.name)
	}
}

// handover gives lines to a caller for as long as that one waits for them:
// what it does with them is its own again afterwards.
type handover struct {
	onLine func([]byte) error
	mu     sync.Mutex
	over   bool
}

// errOver ends a command whose lines nobody takes.
var errOver = errors.New("nobody waits for the command")

func (h *handover) give(line []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return errOver
	}
	return h.onLine(line)
}

// end waits for the line that is being taken.
func (h *handover) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
}

// closeChannel ends a command nobody waits for. It may take as long as the
// connection lives.
func closeChannel(channel <-chan *ssh.Session, ended <-chan error) {
	select {
	case session := <-channel:
		_ = session.Close()
	case <-ended: //nolint:errcheck // nobody waits for how it ended
	}
}

func (s *Session) execNow(c command, channel chan<- *ssh.Session) error {
	session, err := s.client.NewSession()
	if err != nil {
		return transport(s.target.addr(), c.name, err)
	}
	defer session.Close()
	channel <- session
	stdout, err := session.StdoutPipe()
	if err != nil {
		return transport(s.target.addr(), c.name, err)
	}
	stderr := &tail{}
	session.Stderr = stderr
	stdin, err := session.StdinPipe()
	if err != nil {
		return transport(s.target.addr(), c.name, err)
	}
	if err := session.Start(c.line); err != nil {
		return transport(s.target.addr(), c.name, err)
	}
	go func() {
		_, _ = stdin.Write(c.stdin) // a command that ended without reading it is no failure
		if c.open != nil {
			<-c.open
		}
		stdin.Close()
	}()
	lineErr := s.eachLine(c, stdout)
	if lineErr != nil {
		_ = session.Close()
	}
	waitErr := session.Wait()
	if lineErr != nil {
		return lineErr
	}
	return s.ended(c, waitErr, stderr.String())
}

// ended tells a failed command from a failed transport.
func (s *Session) ended(c command, err error, stderr string) error {
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		failed := &CommandError{Command: c.name, Exit: exit.ExitStatus(), Signal: exit.Signal(), Tail: stderr}
		if exit.Signal() != "" {
			failed.Exit = -1
		}
		return failed
	default:
		return transport(s.target.addr(), c.name, err)
	}
}

func (s *Session) eachLine(c command, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		if err := c.onLine(lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fault.Operator("check what answers there", "%s at %s sent a line of more than %d bytes", c.name, s.target.addr(), maxLine)
	}
	return nil // a broken connection shows in the wait for the command
}

func gaveUp(ctx context.Context, addr, doing string) error {
	return failure(fault.Transient, ctx.Err(), context.Cause(ctx), "", "%s at %s was given up", doing, addr)
}

// tail keeps the end of a stream.
type tail struct{ data []byte }

// Write keeps the last maxTail bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if over := len(t.data) - maxTail; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// String is the kept end without blanks around it.
func (t *tail) String() string { return strings.TrimSpace(string(t.data)) }
