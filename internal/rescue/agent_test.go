package rescue_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/rescue/rescuetest"
)

func TestTheAgentIsUploadedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	for range 2 {
		s := b.connect(t, b.target())
		require.NoError(t, s.EnsureAgent(t.Context()))
		require.NoError(t, s.EnsureAgent(t.Context()), "costs nothing")
		inventory, err := s.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, b.machine.Boots()[0].ID, inventory.BootID)
		require.True(t, inventory.Root.InRAM)
		require.Len(t, inventory.Disks, 2)
	}
	require.EqualValues(t, 2, b.asked.Load(), "the password is fetched once a session")
	require.Len(t, agentFiles(t, b), 1)
	for _, command := range b.commands() {
		require.NotContains(t, command, password)
		require.NotContains(t, command, "correct")
	}
	require.Contains(t, strings.Join(b.commands(), "\n"), "sudo -k -S -p '' -- /home/rescue/.ironlot/agent-")
}

// agentFiles lists the uploaded files, and checks that nobody else can read
// them.
func agentFiles(t *testing.T, b *bench) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(filepath.Dir(b.machine.DiskPath(1)), "ram/*/root/home/rescue/.ironlot"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	info, err := os.Stat(dirs[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	names, err := filepath.Glob(filepath.Join(dirs[0], "*"))
	require.NoError(t, err)
	return names
}

func TestABrokenAgentIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	require.NoError(t, b.connect(t, b.target()).EnsureAgent(t.Context()))
	file := agentFiles(t, b)[0]
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, make([]byte, len(whole)), 0o700))

	require.NoError(t, b.connect(t, b.target()).EnsureAgent(t.Context()))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, whole, again)
	require.Len(t, agentFiles(t, b), 1)
}

func TestAMachineWithoutAnAgentForIt(t *testing.T) {
	t.Parallel()
	for machine, says := range map[string]string{"aarch64": "agent-linux-arm64", "riscv64": "no agent"} {
		b := newBench(t, func(o *simulated.Options) { o.Machine = machine })
		b.bootRescue(t)
		err := b.connect(t, b.target()).EnsureAgent(t.Context())
		require.ErrorContains(t, err, says)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
		require.Equal(t, []string{"uname -m"}, b.commands(), "nothing else is tried")
	}
}

func TestSudo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)

	fetched := 0
	target := b.target()
	target.Password = func(context.Context) (string, error) {
		fetched++
		return fmt.Sprintf("wrong-%d", fetched), nil
	}
	err := b.connect(t, target).EnsureAgent(t.Context())
	require.ErrorIs(t, err, rescue.ErrSudo)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.Equal(t, 2, fetched, "a refused password is fetched once more")
	require.NotContains(t, fmt.Sprintf("%+v", err), "wrong-")

	target.Password = func(context.Context) (string, error) {
		fetched++
		return map[bool]string{true: "of the boot before", false: password}[fetched == 3], nil
	}
	require.NoError(t, b.connect(t, target).EnsureAgent(t.Context()))

	refused := errors.New("the provider is down")
	target.Password = func(context.Context) (string, error) { return "", refused }
	require.ErrorIs(t, b.connect(t, target).EnsureAgent(t.Context()), refused)
	target.Password = nil
	require.ErrorContains(t, b.connect(t, target).EnsureAgent(t.Context()), "needs a password")
	target.Password = func(context.Context) (string, error) { return "two\nlines", nil }
	require.ErrorContains(t, b.connect(t, target).EnsureAgent(t.Context()), "line break")
	for _, command := range b.commands() {
		require.NotContains(t, command, "wrong")
	}
}

func TestSudoWithoutPassword(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *simulated.Options) { o.NoPassword = true })
	b.bootRescue(t)
	s := b.connect(t, b.target())
	require.NoError(t, s.EnsureAgent(t.Context()))
	_, err := s.Inspect(t.Context())
	require.NoError(t, err)
}

func TestRootNeedsNoSudo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.boot(t, "root")
	target := b.target()
	target.User, target.Password = "root", nil
	s := b.connect(t, target)
	require.NoError(t, s.EnsureAgent(t.Context()))
	_, err := s.Inspect(t.Context())
	require.NoError(t, err)
	require.NotContains(t, strings.Join(b.commands(), "\n"), "sudo")
}

// TestAnAgentReplacedUnderTheWorker: a worker brings the agent that it was
// started with, and no other one.
func TestAnAgentReplacedUnderTheWorker(t *testing.T) {
	t.Parallel()
	var started rescue.Binary
	b := newBench(t)
	b.dialer = rescuetest.Dialer(t, func(o *rescue.Options) { started = o.Agents["amd64"] })
	b.bootRescue(t)
	other := strings.Repeat("no agent ", int(started.Size)/len("no agent "))
	write(t, started.Path, other)
	err := b.connect(t, b.target()).EnsureAgent(t.Context())
	require.EqualError(t, err, fmt.Sprintf("the agent at %s:2222 has digest %.12s after the upload, not %.12s; "+
		"restart the worker if its agent file was replaced, else make room in the rescue system's RAM or boot rescue again",
		b.machine.Address(), fmt.Sprintf("%x", sha256.Sum256([]byte(other))), started.SHA256))
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}
