package rescue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/pkg/sftp"
	"go.uber.org/zap"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
)

// BootID is the kernel's boot ID, read without the agent.
func (s *Session) BootID(ctx context.Context) (string, error) {
	return s.oneLine(ctx, "cat /proc/sys/kernel/random/boot_id")
}

// EnsureAgent makes sure that the right agent lies on the rescue system and
// runs as root there: uploaded when it is not there, then run, its own
// digest compared with ours. It may be called again at no cost.
func (s *Session) EnsureAgent(ctx context.Context) error {
	if _, err := s.agentPath(); err == nil {
		return nil
	}
	binary, err := s.binary(ctx)
	if err != nil {
		return err
	}
	remote, err := s.upload(ctx, binary, false)
	if err != nil {
		return err
	}
	if err := s.proveRoot(ctx, remote, binary); err != nil {
		if remote, err = s.mend(ctx, remote, binary, err); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.agent = remote
	s.mu.Unlock()
	return nil
}

func (s *Session) agentPath() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent == "" {
		return "", fault.Operator("", "the agent was not brought to %s before it was called", s.target.addr())
	}
	return s.agent, nil
}

func (s *Session) binary(ctx context.Context) (Binary, error) {
	machine, err := s.oneLine(ctx, "uname -m")
	if err != nil {
		return Binary{}, err
	}
	switch machine {
	case "x86_64":
		return s.agents.forArch("amd64")
	case "aarch64":
		return s.agents.forArch("arm64")
	default:
		return Binary{}, fault.Operator("use a server with an amd64 or arm64 processor", "the machine at %s is %.32q, for which there is no agent", s.target.addr(), machine)
	}
}

// mend finds out whether it is the agent that cannot be run as root, or its
// file that is broken, for all its right size: that is uploaded once more.
func (s *Session) mend(ctx context.Context, remote string, binary Binary, failed error) (string, error) {
	if s.verify(ctx, remote, binary) == nil {
		return remote, failed
	}
	remote, err := s.upload(ctx, binary, true)
	if err != nil {
		return "", err
	}
	if err := s.verify(ctx, remote, binary); err != nil {
		return "", err
	}
	return remote, s.proveRoot(ctx, remote, binary)
}

// verify runs the agent as the login user and compares digests.
func (s *Session) verify(ctx context.Context, remote string, want Binary) error {
	return s.verifyAs(ctx, command{line: quote(remote) + " version", name: "agent version"}, want)
}

// verifyAs runs a command for the agent's version and compares digests.
func (s *Session) verifyAs(ctx context.Context, c command, want Binary) error {
	got, err := answer[api.Version](ctx, s, c)
	if err != nil {
		return err
	}
	if got.SHA256 != want.SHA256 {
		return fault.Operator("restart the worker if its agent file was replaced, else make room in the rescue system's RAM or boot rescue again",
			"the agent at %s has digest %.12s after the upload, not %.12s", s.target.addr(), got.SHA256, want.SHA256)
	}
	return nil
}

// proveRoot runs the agent as root and compares digests. A password that sudo
// refuses is fetched once more: the provider changes it with every rescue boot.
func (s *Session) proveRoot(ctx context.Context, remote string, want Binary) error {
	var err error
	for range 2 {
		var c command
		if c, err = s.agentCommand(ctx, remote, nil, "version"); err != nil {
			return err
		}
		if err = s.verifyAs(ctx, c, want); !errors.Is(err, ErrSudo) {
			return err
		}
		s.forgetPassword()
	}
	return err
}

// upload copies the agent into a private directory of the login user. The
// file gets its name when it is whole.
func (s *Session) upload(ctx context.Context, binary Binary, again bool) (string, error) {
	type result struct {
		remote string
		err    error
	}
	done := make(chan result, 1)
	go func() {
		// One write at a time would wait for the network 250 times. What a
		// broken upload leaves behind never gets the agent's name.
		client, err := sftp.NewClient(s.client, sftp.UseConcurrentWrites(true))
		if err != nil {
			done <- result{err: s.noSFTP(err)}
			return
		}
		defer client.Close()
		remote, err := put(client, binary, again)
		done <- result{remote, s.uploadError(err)}
	}()
	select {
	case <-ctx.Done():
		return "", gaveUp(ctx, s.target.addr(), "the upload of the agent")
	case r := <-done:
		s.log.Debug("agent is on the rescue system", zap.String("address", s.target.addr()), zap.String("path", r.remote))
		return r.remote, r.err
	}
}

// noSFTP tells a rescue system that refuses SFTP, and will go on doing so,
// from a broken connection.
func (s *Session) noSFTP(err error) error {
	if s.ping() != nil {
		return transport(s.target.addr(), "the start of SFTP", err)
	}
	return fault.Operator("check that the rescue system's sshd has an sftp subsystem (package openssh-sftp-server)",
		"SSH at %s offers no SFTP for the upload of the agent: %w", s.target.addr(), err)
}

// uploadError tells a refusal of the remote side from a broken connection.
func (s *Session) uploadError(err error) error {
	var status *sftp.StatusError
	var local *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.As(err, &local):
		return fault.Operator("check that the login user's home can be written and has 20 MiB of room", "the agent cannot be uploaded to %s: %w", s.target.addr(), err)
	default:
		return transport(s.target.addr(), "the upload of the agent", err)
	}
}

func put(client *sftp.Client, binary Binary, again bool) (string, error) {
	home, err := client.Getwd()
	if err != nil {
		return "", err
	}
	dir := path.Join(home, ".ironlot")
	if err := client.MkdirAll(dir); err != nil {
		return "", err
	}
	if err := client.Chmod(dir, 0o700); err != nil {
		return "", err
	}
	remote := path.Join(dir, "agent-"+binary.SHA256[:12])
	if info, err := client.Stat(remote); err == nil && info.Size() == binary.Size && !again {
		return remote, nil
	}
	part := remote + "." + token()
	if err := send(client, binary.Path, part); err != nil {
		_ = client.Remove(part)
		return "", err
	}
	return remote, client.PosixRename(part, remote)
}

func send(client *sftp.Client, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := client.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	if _, err := out.ReadFrom(in); err != nil {
		out.Close()
		return err
	}
	if err := out.Chmod(0o700); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

func token() string {
	var b [4]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
