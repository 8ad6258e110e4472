package rescue

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/fault"
)

// Session is a login to one boot of a rescue system. It is safe for
// concurrent use.
type Session struct {
	client  *ssh.Client
	target  Target
	hostKey string
	agents  Agents
	log     *zap.Logger
	timing  timing
	closed  chan struct{}
	close   sync.Once

	mu       sync.Mutex
	agent    string // remote path, when EnsureAgent has proved it
	password string
	fetched  bool
}

func newSession(client *ssh.Client, t Target, hostKey string, d *Dialer) *Session {
	s := &Session{client: client, target: t, hostKey: hostKey, agents: d.agents, log: d.log, timing: d.timing, closed: make(chan struct{})}
	go s.keepalive()
	return s
}

// HostKey is the fingerprint (SHA256:…) of the key that the rescue system
// proved to have.
func (s *Session) HostKey() string { return s.hostKey }

// User is who is logged in.
func (s *Session) User() string { return s.target.User }

// Close ends the connection. Jobs of the agent go on.
func (s *Session) Close() error {
	s.close.Do(func() {
		close(s.closed)
		s.client.Close()
	})
	return nil
}

// keepalive ends the connection when the peer does not answer any more, so
// that every call on it ends as well.
func (s *Session) keepalive() {
	ticker := time.NewTicker(s.timing.keepaliveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.closed:
			return
		case <-ticker.C:
			if err := s.ping(); err != nil {
				s.log.Debug("rescue system does not answer any more", zap.String("address", s.target.addr()), zap.Error(err))
				s.client.Close()
				return
			}
		}
	}
}

func (s *Session) ping() error {
	answer := make(chan error, 1)
	go func() {
		_, _, err := s.client.SendRequest("keepalive@openssh.com", true, nil)
		answer <- err
	}()
	select {
	case err := <-answer:
		return err
	case <-s.closed:
		return nil
	case <-time.After(s.timing.keepaliveWait):
		return errors.New("no answer to a keepalive")
	}
}

// isRoot reports whether commands run as root without sudo.
func (s *Session) isRoot() bool { return s.target.User == "root" }

// sudoPassword fetches the password once.
func (s *Session) sudoPassword(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetched {
		return s.password, nil
	}
	if s.target.Password == nil {
		return "", fault.Operator("log in as root or give the rescue password", "user %q needs a password for sudo at %s and there is none", s.target.User, s.target.addr())
	}
	password, err := s.target.Password(ctx)
	if err != nil {
		return "", err
	}
	s.password, s.fetched = password, true
	return password, nil
}

func (s *Session) forgetPassword() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.password, s.fetched = "", false
}
