package rescue_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/rescue"
)

// TestARescueSystemWithoutSFTP: what sshd refuses it will refuse the next
// time as well, so nobody waits for it.
func TestARescueSystemWithoutSFTP(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	address := serveWithoutSFTP(t)
	s := b.connect(t, rescue.Target{Address: address.IP.String(), Port: address.Port, User: "root"})
	err := s.EnsureAgent(t.Context())
	require.ErrorContains(t, err, "offers no SFTP")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}

// serveWithoutSFTP is an sshd that runs `uname -m` and refuses subsystems.
func serveWithoutSFTP(t *testing.T) *net.TCPAddr {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	hostKey, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(hostKey)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go refuseSubsystems(conn, config)
		}
	}()
	return listener.Addr().(*net.TCPAddr)
}

func refuseSubsystems(conn net.Conn, config *ssh.ServerConfig) {
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
		go func() {
			for r := range requests {
				_ = r.Reply(r.Type == "exec", nil)
				if r.Type == "exec" {
					_, _ = channel.Write([]byte("x86_64\n"))
					_, _ = channel.SendRequest("exit-status", false, make([]byte, 4))
					_ = channel.Close()
				}
			}
		}()
	}
}

// TestHomeThatTakesNoAgent: it is the rescue system's own fault.
func TestHomeThatTakesNoAgent(t *testing.T) {
	t.Parallel()
	var dir string
	b := newBench(t, func(o *simulated.Options) { dir = o.Dir })
	b.bootRescue(t)
	s := b.connect(t, b.target())
	write(t, filepath.Join(dir, "ram", "1", "root", "home", "rescue", ".ironlot"), "a file in the way")
	err := s.EnsureAgent(t.Context())
	require.ErrorContains(t, err, "the agent cannot be uploaded to "+b.machine.Address()+":2222: ")
	require.ErrorContains(t, err, "; check that the login user's home can be written and has 20 MB of room")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}
