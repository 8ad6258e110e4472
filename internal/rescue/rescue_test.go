package rescue_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh/agent"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/rescue/rescuetest"
	"github.com/ironlot/ironlot/internal/testenv"
)

const password = "correct horse battery staple"

// bench is a machine of the lab and who may log in to it.
type bench struct {
	machine *simulated.Machine
	dialer  *rescue.Dialer
	asked   atomic.Int32 // times the password was fetched
}

func newBench(t *testing.T, change ...func(*simulated.Options)) *bench {
	t.Helper()
	return &bench{machine: rescuetest.Machine(t, change...), dialer: rescuetest.Dialer(t)}
}

func (b *bench) bootRescue(t *testing.T) {
	t.Helper()
	b.boot(t, "rescue")
}

func (b *bench) boot(t *testing.T, user string) {
	t.Helper()
	require.NoError(t, b.machine.PowerOn(hardware.BootRescue, hardware.Rescue{
		User: user, Password: password, AuthorizedKeys: b.dialer.PublicKeys(),
	}))
	require.NoError(t, b.machine.WaitState(testenv.Soon(t), simulated.InRescue))
}

func (b *bench) target() rescue.Target {
	return rescue.Target{
		Address: b.machine.Address(), Port: 2222, User: "rescue",
		Password: func(context.Context) (string, error) {
			b.asked.Add(1)
			return password, nil
		},
	}
}

func (b *bench) connect(t *testing.T, target rescue.Target) *rescue.Session {
	t.Helper()
	s, err := b.dialer.Connect(t.Context(), target)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// commands lists what the machine's shell was given in all boots.
func (b *bench) commands() []string {
	var all []string
	for _, boot := range b.machine.Boots() {
		all = append(all, boot.Commands...)
	}
	return all
}

func TestTheHostKeyIsPinnedForTheBoot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	first := b.connect(t, b.target())
	require.Equal(t, b.machine.Boots()[0].HostKey, first.HostKey())
	require.Equal(t, "rescue", first.User())
	id, err := first.BootID(t.Context())
	require.NoError(t, err)
	require.Equal(t, b.machine.Boots()[0].ID, id)

	pinned := b.target()
	pinned.HostKey = first.HostKey()
	b.connect(t, pinned)

	b.bootRescue(t)
	_, err = b.dialer.Connect(t.Context(), pinned)
	require.ErrorIs(t, err, rescue.ErrHostKey)
	require.Equal(t, fault.RescueLost, fault.ClassOf(err))
	second := b.connect(t, b.target())
	require.NotEqual(t, first.HostKey(), second.HostKey())

	_, err = first.BootID(t.Context())
	require.ErrorIs(t, err, rescue.ErrTransport, "the old connection is dead")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
}

func TestWhoIsNotAnswering(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.dialer.HurryHandshake(200 * time.Millisecond)

	_, err := b.dialer.Connect(t.Context(), b.target())
	require.ErrorIs(t, err, rescue.ErrNotAnswering, "powered off")
	require.Equal(t, fault.Transient, fault.ClassOf(err))

	for name, greet := range map[string]string{"silent": "", "not SSH": "220 mail.example.com ESMTP\r\n", "cut": "bye"} {
		_, err := b.dialer.Connect(t.Context(), strangerTarget(t, greet, name == "cut"))
		require.ErrorIs(t, err, rescue.ErrNotAnswering, name)
		require.Equal(t, fault.Transient, fault.ClassOf(err), name)
	}

	ctx, cancel := context.WithCancel(t.Context())
	b.dialer.HurryHandshake(time.Hour)
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = b.dialer.Connect(ctx, strangerTarget(t, "", false))
	require.ErrorIs(t, err, context.Canceled)
}

// strangerTarget is somebody who does not speak SSH.
func strangerTarget(t *testing.T, greeting string, cut bool) rescue.Target {
	t.Helper()
	addr := accept(t, "tcp", "127.0.0.1:0", func(conn net.Conn) {
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, greeting)
		if cut {
			conn.Close()
		}
	})
	return rescue.Target{Address: "127.0.0.1", Port: addr.(*net.TCPAddr).Port, User: "rescue"}
}

func TestTheOldSystemRefusesTheLogin(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *simulated.Options) { o.Faults.OldSystem = true })
	require.NoError(t, b.machine.PowerOn(hardware.BootRescue, hardware.Rescue{
		User: "rescue", Password: password, AuthorizedKeys: b.dialer.PublicKeys(),
	}))
	require.NoError(t, b.machine.WaitState(testenv.Soon(t), simulated.InOS))
	_, err := b.dialer.Connect(t.Context(), b.target())
	require.ErrorIs(t, err, rescue.ErrAuth)
	require.NotErrorIs(t, err, rescue.ErrNotAnswering)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}

func TestLoginWithAnSSHAgent(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	ring := agent.NewKeyring()
	require.NoError(t, ring.Add(agent.AddedKey{PrivateKey: private}))
	b := newBench(t)
	b.dialer, err = rescue.NewDialer(rescue.Options{AgentSocket: serveAgent(t, ring)})
	require.NoError(t, err)
	b.bootRescue(t)
	_, err = b.connect(t, b.target()).BootID(t.Context())
	require.NoError(t, err)
}

func TestASilentPeerIsNoticed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.dialer.HurryKeepalive(50*time.Millisecond, 4*time.Second)
	b.bootRescue(t)
	s := b.connect(t, b.target())
	b.machine.SetNetwork(false)
	_, err := s.BootID(t.Context())
	require.ErrorIs(t, err, rescue.ErrTransport)

	b.machine.SetNetwork(true)
	_, err = b.connect(t, b.target()).BootID(t.Context())
	require.NoError(t, err)
}

func TestTheContextEndsAWaitAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	s := b.connect(t, b.target())
	b.machine.SetNetwork(false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := s.BootID(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Error(t, s.EnsureAgent(ctx))
	require.Less(t, time.Since(begin), 4*time.Second, "long before a keepalive would tell")
}

func TestOddWordsNeverReachTheShell(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	s := b.connect(t, b.target())
	require.NoError(t, s.EnsureAgent(t.Context()))
	before := len(b.commands())
	for _, odd := range []string{"", "a b", "$(reboot)", "a;b", "../x", "-f", "'", strings.Repeat("x", 129)} {
		_, err := s.JobStatus(t.Context(), "boot", odd)
		require.Error(t, err, odd)
		_, err = s.CancelJob(t.Context(), odd, "key")
		require.Error(t, err, odd)
		require.Error(t, s.Reset(t.Context(), odd), odd)
	}
	require.Len(t, b.commands(), before)
}
