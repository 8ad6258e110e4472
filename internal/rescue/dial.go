// Package rescue is the worker's side of the rescue system: it connects over
// SSH, pins the host key of the boot, brings the agent there and talks to it.
package rescue

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/fault"
)

// timing bounds how long a silent peer is waited for, and how long a session is
// kept that nobody uses. A dead peer is noticed after at most keepaliveEvery +
// keepaliveWait.
type timing struct {
	dial, handshake               time.Duration
	keepaliveEvery, keepaliveWait time.Duration
	keep                          time.Duration
}

func defaultTiming() timing {
	return timing{
		dial: 10 * time.Second, handshake: 20 * time.Second,
		keepaliveEvery: 5 * time.Second, keepaliveWait: 10 * time.Second,
		keep: 30 * time.Second,
	}
}

// Options say how rescue systems are reached.
type Options struct {
	KeyFile     string      // private key; when empty the SSH agent is asked
	AgentSocket string      // the value of SSH_AUTH_SOCK
	Agents      Agents      // from FindAgents
	Log         *zap.Logger // may be nil
}

// Dialer connects to rescue systems. It is safe for concurrent use.
type Dialer struct {
	keys       keySource
	publicKeys []string
	agents     Agents
	log        *zap.Logger
	timing     timing

	mu   sync.Mutex
	kept map[boot]*kept
}

// NewDialer reads the keys. Every error is one that the operator can mend.
func NewDialer(o Options) (*Dialer, error) {
	keys, err := findKeys(o)
	if err != nil {
		return nil, err
	}
	publicKeys, err := authorizedKeys(keys)
	if err != nil {
		return nil, err
	}
	log := o.Log
	if log == nil {
		log = zap.NewNop()
	}
	return &Dialer{keys: keys, publicKeys: publicKeys, agents: o.Agents, log: log, timing: defaultTiming(), kept: map[boot]*kept{}}, nil
}

func findKeys(o Options) (keySource, error) {
	switch {
	case o.KeyFile != "":
		return fileKey(o.KeyFile)
	case o.AgentSocket != "":
		return agentKeys(o.AgentSocket), nil
	default:
		return nil, fault.Operator("name a private key file or set SSH_AUTH_SOCK", "there is no SSH key to log in to the rescue system with")
	}
}

// PublicKeys lists the public keys that log in, as authorized_keys lines.
func (d *Dialer) PublicKeys() []string { return append([]string(nil), d.publicKeys...) }

// Target is a rescue system to connect to.
type Target struct {
	Address string
	Port    int // 0 means 22
	User    string
	// HostKey is the pinned fingerprint (SHA256:…) of this boot; empty means
	// trust on first use.
	HostKey string
	// Password gives the sudo password. It is called only when the user is
	// not root, at the first command that needs root.
	Password func(ctx context.Context) (string, error)
}

func (t Target) addr() string {
	port := t.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(t.Address, strconv.Itoa(port))
}

// Connect logs in. Its errors are ErrNotAnswering, ErrAuth and ErrHostKey,
// or the context's.
func (d *Dialer) Connect(ctx context.Context, t Target) (*Session, error) {
	conn, err := (&net.Dialer{Timeout: d.timing.dial}).DialContext(ctx, "tcp", t.addr())
	if err != nil {
		return nil, d.classify(ctx, t, login{}, err)
	}
	seen := login{}
	client, err := d.handshake(ctx, conn, t, &seen)
	if err != nil {
		conn.Close()
		return nil, d.classify(ctx, t, seen, err)
	}
	s := newSession(client, t, seen.hostKey, d)
	d.log.Debug("connected to the rescue system", zap.String("address", t.addr()), zap.String("hostKey", seen.hostKey))
	return s, nil
}

// login is how far a handshake came. Errors are told apart by it, not by
// their text.
type login struct {
	hostKey string // fingerprint that the server proved
	changed bool   // and it is not the pinned one
	asked   bool   // the server asked for our keys
	keys    error  // our keys could not be had
}

func (d *Dialer) handshake(ctx context.Context, conn net.Conn, t Target, seen *login) (*ssh.Client, error) {
	// A deadline and a closed connection are the only ways to end a handshake.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(d.timing.handshake)); err != nil {
		return nil, err
	}
	done := func() {}
	defer func() { done() }()
	config := &ssh.ClientConfig{
		User:              t.User,
		HostKeyAlgorithms: hostKeyAlgorithms(),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			seen.hostKey = ssh.FingerprintSHA256(key)
			seen.changed = t.HostKey != "" && seen.hostKey != t.HostKey
			if seen.changed {
				return ErrHostKey
			}
			return nil
		},
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			seen.asked = true
			signers, release, err := d.keys()
			if err != nil {
				seen.keys = err
				return nil, err
			}
			done = release
			return signers, nil
		})},
	}
	sshConn, channels, requests, err := ssh.NewClientConn(conn, t.addr(), config)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return ssh.NewClient(sshConn, channels, requests), nil
}

// hostKeyAlgorithms is a fixed order, so that a server with several host
// keys always shows the same one.
func hostKeyAlgorithms() []string {
	return []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
}

func (d *Dialer) classify(ctx context.Context, t Target, seen login, err error) error {
	var netErr net.Error
	switch {
	case ctx.Err() != nil:
		return failure(fault.Transient, ctx.Err(), context.Cause(ctx), "", "connecting to %s was given up", t.addr())
	case seen.changed:
		return failure(fault.RescueLost, ErrHostKey, nil, "", "the SSH host key at %s is %s, not the pinned %s: the rescue boot is gone",
			t.addr(), seen.hostKey, t.HostKey)
	case seen.keys != nil:
		return seen.keys
	case !seen.asked, errors.Is(err, io.EOF), errors.As(err, &netErr):
		return notAnswering(t.addr(), err)
	default:
		return failure(fault.NeedsOperator, ErrAuth, err,
			"check that the worker's SSH key is registered with the provider and that the server runs its rescue system",
			"SSH at %s refused the login of user %q", t.addr(), t.User)
	}
}
