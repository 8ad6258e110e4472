// Package home is the directory where one person's machine keeps Ironlot's
// state: Temporal's database, the age identity and logs.
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/seal"
)

// The environment variables that this package reads.
const (
	EnvHome       = "IRONLOT_HOME"       // the directory itself
	EnvRecipients = "IRONLOT_RECIPIENTS" // age public keys of the workers, separated by commas
)

// Home is the directory, which exists and is nobody else's to read.
type Home struct {
	Dir    string
	lookup func(string) (string, bool)
}

// Open finds the directory by the environment ($IRONLOT_HOME, else
// $XDG_STATE_HOME/ironlot, else ~/.local/state/ironlot) and makes it with
// mode 0700. One that others may read is refused, since it holds the key to
// every machine config.
func Open(lookup func(string) (string, bool)) (*Home, error) {
	dir, err := find(lookup)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Operator("set "+EnvHome+" to a directory that you may write", "the state directory cannot be made: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fault.Operator("set "+EnvHome+" to a directory that you may read", "the state directory cannot be read: %w", err)
	}
	if !info.IsDir() {
		return nil, fault.Operator("set "+EnvHome+" to a directory", "%s is not a directory", dir)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fault.Operator("run `chmod 0700 "+dir+"`", "the state directory %s has mode %04o, which lets other users in", dir, mode)
	}
	return &Home{Dir: dir, lookup: lookup}, nil
}

func find(lookup func(string) (string, bool)) (string, error) {
	if dir, _ := lookup(EnvHome); dir != "" {
		return filepath.Abs(dir)
	}
	if dir, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ironlot"), nil
	}
	if dir, _ := lookup("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "ironlot"), nil
	}
	return "", fault.Operator("set "+EnvHome, "there is no place for the state directory: neither %s nor HOME is set", EnvHome)
}

// Database is the path of Temporal's database.
func (h *Home) Database() string { return filepath.Join(h.Dir, "temporal.db") }

// ServerLog is the path of the log of Temporal's server.
func (h *Home) ServerLog() string { return filepath.Join(h.Dir, "temporal.log") }

// WorkerLog is the path of the log of the worker that `up` runs.
func (h *Home) WorkerLog() string { return filepath.Join(h.Dir, "worker.log") }

// IdentityFile is the path of the age identity.
func (h *Home) IdentityFile() string { return filepath.Join(h.Dir, "identity.txt") }

// RecipientsFile is the path of the list of the workers' public keys, one a
// line. Without it everything is sealed to the identity of this directory.
func (h *Home) RecipientsFile() string { return filepath.Join(h.Dir, "recipients.txt") }

// Recipients gives the public keys that machine configs are sealed to:
// $IRONLOT_RECIPIENTS, else the recipients file, else the identity of this
// directory, which is made when it is not there.
func (h *Home) Recipients() ([]age.Recipient, error) {
	if list, _ := h.lookup(EnvRecipients); list != "" {
		return named(EnvRecipients, strings.Split(list, ","))
	}
	text, err := os.ReadFile(h.RecipientsFile())
	if err == nil {
		return named(h.RecipientsFile(), lines(string(text)))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Operator("make it readable, or remove it to use this machine's own identity", "the recipients cannot be read: %w", err)
	}
	identities, err := seal.LoadOrCreateIdentity(h.IdentityFile())
	if err != nil {
		return nil, err
	}
	return seal.Recipients(identities...), nil
}

// named says where recipients were found that cannot be used.
func named(where string, values []string) ([]age.Recipient, error) {
	recipients, err := seal.ParseRecipients(values...)
	var problems []error
	for _, err := range fault.Each(err) {
		problems = append(problems, fmt.Errorf("%s: %w", where, err))
	}
	return recipients, errors.Join(problems...)
}

// lines gives the lines of a text that are neither empty nor a comment.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}
