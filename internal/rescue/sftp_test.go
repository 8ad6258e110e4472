package rescue_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/simulated"
)

// TestARescueSystemWithoutSFTP: what sshd refuses it will refuse the next
// time as well, so nobody waits for it.
func TestARescueSystemWithoutSFTP(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.connect(t, serve(t, sshd{says: func(string) (string, uint32) { return "x86_64\n", 0 }}))
	err := s.EnsureAgent(t.Context())
	require.ErrorContains(t, err, "offers no SFTP")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
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
	require.ErrorContains(t, err, "; check that the login user's home can be written and has 20 MiB of room")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}
