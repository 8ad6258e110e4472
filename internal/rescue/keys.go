package rescue

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/ironlot/ironlot/internal/fault"
)

// keySource gives the private keys to log in with, and what to close after
// the login.
type keySource func() (signers []ssh.Signer, done func(), err error)

// fileKey reads a private key once.
func fileKey(path string) (keySource, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Operator("check the path and that the worker may read it", "cannot read the SSH key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	var encrypted *ssh.PassphraseMissingError
	if errors.As(err, &encrypted) {
		return nil, fault.Operator("load it into an SSH agent with `ssh-add` and set SSH_AUTH_SOCK instead of the key file",
			"the SSH key %s is protected by a passphrase", path)
	}
	if err != nil {
		return nil, fault.Operator("name the private key, not the .pub file", "%s is not an SSH private key", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Operator("check the path and that the worker may read it", "cannot read the SSH key: %w", err)
	}
	// ssh refuses such a key too.
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fault.Operator("run `chmod 0600 "+path+"`", "the SSH key %s has mode %#o, which lets other users read it", path, mode)
	}
	return func() ([]ssh.Signer, func(), error) { return []ssh.Signer{signer}, func() {}, nil }, nil
}

// agentKeys asks the SSH agent anew at every login, so that a restarted
// agent or an added key counts.
func agentKeys(socket string) keySource {
	return func() ([]ssh.Signer, func(), error) {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket) // local: it answers or refuses at once
		if err != nil {
			return nil, nil, fault.Operator("start the agent or name a key file", "cannot reach the SSH agent at SSH_AUTH_SOCK: %w", err)
		}
		done := func() { conn.Close() }
		signers, err := agent.NewClient(conn).Signers()
		if err != nil {
			done()
			return nil, nil, fault.Operator("check the agent with `ssh-add -l`", "the SSH agent does not list its keys: %w", err)
		}
		if len(signers) == 0 {
			done()
			return nil, nil, fault.Operator("add one with `ssh-add`", "the SSH agent holds no key")
		}
		return signers, done, nil
	}
}

// authorizedKeys gives the public keys in authorized_keys form.
func authorizedKeys(keys keySource) ([]string, error) {
	signers, done, err := keys()
	if err != nil {
		return nil, err
	}
	defer done()
	var lines []string
	for _, signer := range signers {
		lines = append(lines, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))))
	}
	return lines, nil
}
