// Package devserver runs Temporal's own dev server as a child process: its
// state in a file, with the Web UI, for one machine.
package devserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/listen"
)

// Options say how the server runs.
type Options struct {
	Binary   string   // path of `temporal`, see Find
	Database string   // path of its database; made when it is not there
	LogFile  string   // gets the server's output, appended
	Host     string   // address that it listens on; empty: 127.0.0.1
	Port     int      // of the API
	UIPort   int      // of the Web UI
	Settings []string // dynamic configuration besides DynamicConfig, each KEY=VALUE in JSON
	Logger   log.Logger
}

// Server is a running dev server.
type Server struct {
	options Options
	cmd     *exec.Cmd
	logFrom int64         // where this server's words begin in the log
	exited  chan struct{} // closed when the process is gone
	err     error         // how it went; read after exited
}

// maxPort is the highest TCP port.
const maxPort = 1<<16 - 1

// stopTime is how long the server may take to close its database.
const stopTime = 15 * time.Second

// Start starts the server and waits until it answers and holds Ironlot's
// search attributes and retention. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if err := portsFree(ctx, o); err != nil {
		return nil, err
	}
	s := &Server{options: o, exited: make(chan struct{})}
	if err := s.spawn(); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, s.giveUp(err)
	}
	return s, nil
}

// Options are what the server was started with.
func (s *Server) Options() Options { return s.options }

// Address is that of the API, host:port.
func (s *Server) Address() string { return join(s.options.Host, s.options.Port) }

// PID is that of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// WebUI is the URL of the Web UI.
func (s *Server) WebUI() string { return "http://" + join(s.options.Host, s.options.UIPort) }

// Done is closed when the server has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.exited }

// Err tells how a server that ended by itself did so.
func (s *Server) Err() error {
	<-s.exited
	return fault.Retry("Temporal's server ended (%s); its last words, of %s, were: %s", s.err, s.options.LogFile, tail(s.options.LogFile, s.logFrom))
}

// Stop asks the server to close its database and end, and waits for it. One
// that does not is killed, which loses nothing: the database is crash safe.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		return nil
	case <-time.After(stopTime):
		_ = s.cmd.Process.Kill()
		<-s.exited
		return fault.Retry("Temporal's server did not stop within %s and was killed", stopTime)
	}
}

// Kill ends the server at once, as a crash does. Its database keeps what it
// had answered to.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may be gone already
	<-s.exited
}

// portsFree refuses ports that are none, or that somebody listens on: the
// server itself would say so only in its log.
func portsFree(ctx context.Context, o Options) error {
	if o.Port == o.UIPort {
		return fault.Operator("give each a port of its own with --port and --ui-port", "Temporal and the Web UI cannot both have port %d", o.Port)
	}
	for _, p := range []struct {
		port       int
		what, flag string
	}{{o.Port, "Temporal", "--port"}, {o.UIPort, "the Web UI", "--ui-port"}} {
		if p.port < 1 || p.port > maxPort {
			return fault.Operator(fmt.Sprintf("give one from 1 to %d with %s", maxPort, p.flag), "%d is no port for %s", p.port, p.what)
		}
		if err := listen.Free(ctx, join(o.Host, p.port)); err != nil {
			return fault.Operator(fmt.Sprintf("stop what uses it, choose another with %s, or set TEMPORAL_ADDRESS to use a Temporal that runs already", p.flag),
				"%s cannot listen on %s: %w", p.what, join(o.Host, p.port), err)
		}
	}
	return nil
}

// spawn starts the process. One thread starts it and stays until its end:
// Linux ends the child with the *thread* that started it.
func (s *Server) spawn() error {
	out, err := os.OpenFile(s.options.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fault.Operator("choose another state directory", "the log of Temporal's server cannot be written: %w", err)
	}
	if info, err := out.Stat(); err == nil {
		s.logFrom = info.Size()
	}
	s.cmd = exec.Command(s.options.Binary, arguments(s.options)...) //nolint:noctx // Stop ends it in order
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.Env = environment(os.Environ())
	s.cmd.SysProcAttr = attributes()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = out.Close() }()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
			s.err = fmt.Errorf("%s", s.cmd.ProcessState)
			close(s.exited)
		}
	}()
	if err := <-started; err != nil {
		return fault.Operator("build it with `"+BuildCommand+"`", "%s cannot be started: %w", s.options.Binary, err)
	}
	return nil
}

// ready waits until the server answers, then prepares its namespace.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	o := client.Options{HostPort: s.Address(), Logger: s.options.Logger}
	for {
		c, err := client.DialContext(ctx, o)
		if err == nil {
			defer c.Close()
			return Prepare(ctx, c, client.DefaultNamespace)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer on %s: %w", s.Address(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// giveUp ends a server that did not come up, and says why.
func (s *Server) giveUp(cause error) error {
	select {
	case <-s.exited:
		return s.Err()
	default:
	}
	_ = s.Stop()
	return fmt.Errorf("the server of Temporal did not come up (see %s): %w", s.options.LogFile, cause)
}

func join(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
