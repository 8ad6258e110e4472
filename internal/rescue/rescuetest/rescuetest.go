// Package rescuetest makes what tests of the way into a rescue system need: a
// machine of the lab, and a dialer that may log in to it.
package rescuetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/rescue"
)

// Machine is a machine of the lab with two disks (LAB-A and LAB-B), delivered
// as RAID 1, switched off, on a loopback address of its own.
func Machine(t *testing.T, change ...func(*simulated.Options)) *simulated.Machine {
	t.Helper()
	options := simulated.Options{
		Name:      "one",
		Address:   fmt.Sprintf("127.%d.%d.%d", 64+mathrand.IntN(64), mathrand.IntN(256), 1+mathrand.IntN(250)), //nolint:gosec // an address, no secret
		Dir:       filepath.Join(t.TempDir(), "machine"),
		Delivered: simulated.RAID1,
		Disks: []simulated.DiskSpec{
			{Serial: "LAB-A", Size: 256 * layout.MiB}, {Serial: "LAB-B", Size: 256 * layout.MiB},
		},
	}
	for _, c := range change {
		c(&options)
	}
	machine, err := simulated.New(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, machine.Close()) })
	return machine
}

// Dialer logs in with a key of its own, and brings an agent.
func Dialer(t *testing.T, change ...func(*rescue.Options)) *rescue.Dialer {
	t.Helper()
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(block), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent-linux-amd64"), []byte(strings.Repeat("an agent ", 100_000)), 0o600))
	agents, err := rescue.FindAgents(dir)
	require.NoError(t, err)
	options := rescue.Options{KeyFile: key, Agents: agents}
	for _, c := range change {
		c(&options)
	}
	dialer, err := rescue.NewDialer(options)
	require.NoError(t, err)
	return dialer
}
