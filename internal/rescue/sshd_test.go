package rescue_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"testing"

	"github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/rescue"
)

// sshd is an SSH server of which a test says what its commands do.
type sshd struct {
	says func(line string) (out string, exit uint32)
	home string // takes files; none means that there is no SFTP
}

// serve gives the way to such a server, for root.
func serve(t *testing.T, d sshd) rescue.Target {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	hostKey, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(hostKey)
	addr := accept(t, "tcp", "127.0.0.1:0", func(conn net.Conn) { d.login(conn, config) }).(*net.TCPAddr)
	return rescue.Target{Address: addr.IP.String(), Port: addr.Port, User: "root"}
}

// accept listens until the test ends, and serves each connection by itself.
func accept(t *testing.T, network, address string, serve func(net.Conn)) net.Addr {
	t.Helper()
	listener, err := net.Listen(network, address)
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr()
}

func (d sshd) login(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, global, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(global) // answers keepalives
	for asked := range channels {
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		go d.session(channel, requests)
	}
}

func (d sshd) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		var asked struct{ Name string } // RFC 4254, section 6.5
		_ = ssh.Unmarshal(r.Payload, &asked)
		_ = r.Reply(r.Type == "exec" || r.Type == "subsystem" && d.home != "", nil)
		switch {
		case r.Type == "exec":
			out, exit := d.says(asked.Name)
			_, _ = channel.Write([]byte(out))
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{exit}))
			_ = channel.Close()
		case r.Type == "subsystem" && d.home != "":
			go d.takeFiles(channel)
		}
	}
}

func (d sshd) takeFiles(channel ssh.Channel) {
	defer channel.Close()
	server, err := sftp.NewServer(channel, sftp.WithServerWorkingDirectory(d.home))
	if err == nil {
		_ = server.Serve() // until the client ends it
	}
}
