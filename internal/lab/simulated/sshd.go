package simulated

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// authorized is who may log in.
type authorized struct {
	user string
	keys [][]byte // wire form
}

func (b *boot) rescueAuth() *authorized {
	a := &authorized{user: b.rescue.User}
	for _, line := range b.rescue.AuthorizedKeys {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil {
			a.keys = append(a.keys, key.Marshal())
		}
	}
	return a
}

func (a *authorized) allows(user string, key ssh.PublicKey) bool {
	if a == nil || user != a.user {
		return false
	}
	for _, k := range a.keys {
		if bytes.Equal(k, key.Marshal()) {
			return true
		}
	}
	return false
}

// sshServer is the SSH server of one boot.
type sshServer struct {
	b      *boot
	config *ssh.ServerConfig
	sent   atomic.Int64
}

func newSSHServer(b *boot, key []byte, auth *authorized) *sshServer {
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-OpenSSH_9.6p1 lab-simulated",
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !auth.allows(c.User(), key) {
				return nil, errors.New("key is not authorised")
			}
			return nil, nil
		},
	}
	if signer, err := hostKey(key); err == nil {
		config.AddHostKey(signer)
	}
	return &sshServer{b: b, config: config}
}

// serve ends with the boot, when the port is free for the next. Connections
// and commands end on their own soon after: a reset does not wait for them.
func (s *sshServer) serve(listener net.Listener) {
	closed := make(chan struct{})
	context.AfterFunc(s.b.ctx, func() {
		defer close(closed)
		listener.Close()
	})
	// Accept may return before Close has given the port back.
	defer func() { <-closed }()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		w := newWire(conn, s.b, &s.sent)
		s.b.m.running.Go(func() { s.serveConn(w) })
	}
}

func (s *sshServer) serveConn(w *wire) {
	defer w.Close()
	stop := context.AfterFunc(s.b.ctx, func() { w.Close() })
	defer stop()
	conn, channels, requests, err := ssh.NewServerConn(w, s.config)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for open := range channels {
		if open.ChannelType() != "session" {
			_ = open.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := open.Accept()
		if err != nil {
			return
		}
		s.b.m.running.Go(func() { s.serveSession(conn.User(), channel, requests) })
	}
}

// serveSession runs the one command or subsystem of a session. The context
// of a command ends when its session does, as a process gets SIGHUP.
func (s *sshServer) serveSession(user string, channel ssh.Channel, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(s.b.ctx)
	defer cancel()
	var running sync.WaitGroup
	started := false
	for request := range requests {
		start := s.starter(ctx, user, request)
		ok := start != nil && !started
		_ = request.Reply(ok, nil)
		if !ok {
			continue
		}
		started = true
		running.Go(func() {
			defer channel.Close()
			status := start(channel)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
		})
	}
	cancel()
	channel.Close()
	running.Wait()
}

// starter gives what a request starts, nil when it is refused.
func (s *sshServer) starter(ctx context.Context, user string, request *ssh.Request) func(ssh.Channel) int {
	var payload struct{ Text string }
	if ssh.Unmarshal(request.Payload, &payload) != nil {
		return nil
	}
	switch {
	case request.Type == "exec":
		s.b.record(payload.Text)
		return func(c ssh.Channel) int {
			shell := &shell{b: s.b, user: user, stdin: c, stdout: c, stderr: c.Stderr()}
			return shell.run(ctx, payload.Text)
		}
	case request.Type == "subsystem" && payload.Text == "sftp":
		return func(c ssh.Channel) int { return s.serveSFTP(user, c) }
	}
	return nil
}

func (s *sshServer) serveSFTP(user string, channel io.ReadWriteCloser) int {
	files, err := newFiles(s.b.rootDir())
	if err != nil {
		return 1
	}
	defer files.Close()
	handlers := sftp.Handlers{FileGet: files, FilePut: files, FileCmd: files, FileList: files}
	server := sftp.NewRequestServer(channel, handlers, sftp.WithStartDirectory(homePath(user)))
	defer server.Close()
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return 1
	}
	return 0
}
