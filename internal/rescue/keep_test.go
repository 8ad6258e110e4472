package rescue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/rescue"
)

// pinned is the boot that a session leads to.
func pinned(b *bench, s *rescue.Session) rescue.Target {
	t := b.target()
	t.HostKey = s.HostKey()
	return t
}

func (b *bench) resume(t *testing.T, target rescue.Target) *rescue.Session {
	t.Helper()
	s, err := b.dialer.Resume(t.Context(), target)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAKeptSessionGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	first, inventory := b.ready(t)
	commands := len(b.commands())
	b.dialer.Keep(first)

	again := b.resume(t, pinned(b, first))
	require.Same(t, first, again)
	require.NoError(t, again.EnsureAgent(t.Context()))
	require.Len(t, b.commands(), commands, "the agent is proved already")
	got, err := again.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, inventory.BootID, got.BootID)
	require.EqualValues(t, 1, b.asked.Load(), "the password is known already")

	other := b.resume(t, pinned(b, first))
	require.NotSame(t, first, other, "a session has one user")
	b.dialer.Keep(first)
	b.dialer.Keep(other)
	_, err = first.BootID(t.Context())
	require.ErrorIs(t, err, rescue.ErrTransport, "one is kept, the last")
	require.Same(t, other, b.resume(t, pinned(b, first)))
}

func TestAKeptSessionIsOfOneBoot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	first := b.connect(t, b.target())
	b.dialer.Keep(first)

	foreign := pinned(b, first)
	foreign.HostKey = "SHA256:of another boot"
	_, err := b.dialer.Resume(t.Context(), foreign)
	require.ErrorIs(t, err, rescue.ErrHostKey)
	require.NotSame(t, first, b.resume(t, b.target()), "a boot that is not pinned is looked at anew")

	b.bootRescue(t)
	_, err = b.dialer.Resume(t.Context(), pinned(b, first))
	require.ErrorIs(t, err, rescue.ErrHostKey, "the boot is gone, and nothing kept hides it")
}

// TestAKeptSessionThatBroke: the machine is the same and the connection is not.
func TestAKeptSessionThatBroke(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.dialer.HurryKeepalive(time.Hour, 50*time.Millisecond)
	b.bootRescue(t)
	first := b.connect(t, b.target())
	b.dialer.Keep(first)
	b.machine.SetNetwork(false)
	_, err := b.dialer.Resume(t.Context(), pinned(b, first))
	require.ErrorIs(t, err, rescue.ErrNotAnswering)

	b.machine.SetNetwork(true)
	_, err = b.resume(t, pinned(b, first)).BootID(t.Context())
	require.NoError(t, err)
}

func TestAKeptSessionEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	left := b.connect(t, b.target())
	b.dialer.HurryKeep(time.Millisecond)
	b.dialer.Keep(left)
	require.Eventually(t, func() bool {
		_, err := left.BootID(t.Context())
		return err != nil
	}, 10*time.Second, time.Millisecond, "nobody takes it")

	left = b.connect(t, b.target())
	b.dialer.HurryKeep(time.Hour)
	b.dialer.Keep(left)
	b.dialer.Close()
	_, err := left.BootID(t.Context())
	require.ErrorIs(t, err, rescue.ErrTransport)
	require.NotSame(t, left, b.resume(t, pinned(b, left)))
}
