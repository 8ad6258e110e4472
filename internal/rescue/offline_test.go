package rescue_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/rescue"
)

func TestFindAgents(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()

	_, err := rescue.FindAgents(first, second)
	require.ErrorContains(t, err, "make agent")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))

	write(t, filepath.Join(second, "agent-linux-arm64"), "arm")
	write(t, filepath.Join(second, "agent-linux-amd64"), "second")
	write(t, filepath.Join(first, "agent-linux-amd64"), "first")
	agents, err := rescue.FindAgents(first, second)
	require.NoError(t, err)
	require.Empty(t, agents.Missing())
	sum := sha256.Sum256([]byte("first"))
	require.Equal(t, rescue.Binary{
		Path: filepath.Join(first, "agent-linux-amd64"), Arch: "amd64", SHA256: hex.EncodeToString(sum[:]), Size: 5,
	}, agents["amd64"])

	agents, err = rescue.FindAgents(first)
	require.NoError(t, err)
	require.Len(t, agents.Missing(), 1)
	require.Contains(t, agents.Missing()[0], "agent-linux-arm64")

	write(t, filepath.Join(first, "agent-linux-amd64"), "")
	_, err = rescue.FindAgents(first)
	require.ErrorContains(t, err, "is empty")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	plain, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("passphrase"))
	require.NoError(t, err)
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		write(t, path, string(data))
		return path
	}
	open := file("open", pem.EncodeToMemory(plain))
	require.NoError(t, os.Chmod(open, 0o644))
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	public := string(ssh.MarshalAuthorizedKey(signer.PublicKey()))

	d, err := rescue.NewDialer(rescue.Options{KeyFile: file("plain", pem.EncodeToMemory(plain))})
	require.NoError(t, err)
	require.Equal(t, []string{public[:len(public)-1]}, d.PublicKeys())

	for name, c := range map[string]struct {
		options rescue.Options
		says    string
	}{
		"none":      {rescue.Options{}, "SSH_AUTH_SOCK"},
		"missing":   {rescue.Options{KeyFile: filepath.Join(dir, "nowhere")}, "cannot read the SSH key"},
		"encrypted": {rescue.Options{KeyFile: file("locked", pem.EncodeToMemory(locked))}, "ssh-add"},
		"for all":   {rescue.Options{KeyFile: open}, "chmod 0600 " + open},
		"public":    {rescue.Options{KeyFile: file("key.pub", []byte(public))}, "not the .pub file"},
		"no agent":  {rescue.Options{AgentSocket: filepath.Join(dir, "none.sock")}, "cannot reach the SSH agent"},
		"no key":    {rescue.Options{AgentSocket: serveAgent(t, agent.NewKeyring())}, "holds no key"},
		"deaf":      {rescue.Options{AgentSocket: serveAgent(t, deafAgent{})}, "the SSH agent does not list its keys: agent: failed to list keys; check the agent with `ssh-add -l`"},
	} {
		_, err := rescue.NewDialer(c.options)
		require.ErrorContains(t, err, c.says, name)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), name)
		require.NotContains(t, err.Error(), "PRIVATE KEY", name)
	}
}

// deafAgent is an SSH agent that refuses to tell its keys.
type deafAgent struct{ agent.Agent }

func (deafAgent) List() ([]*agent.Key, error) { return nil, errors.New("it is locked") }

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// serveAgent is an SSH agent on a socket.
func serveAgent(t *testing.T, keys agent.Agent) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // socket paths must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	accept(t, "unix", socket, func(conn net.Conn) {
		_ = agent.ServeAgent(keys, conn) // it ends with its connection
	})
	return socket
}
