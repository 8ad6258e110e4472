package seal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/ironlot/ironlot/internal/fault"
)

// EnvIdentity is the environment variable that may hold identities themselves
// instead of a file, for workers in containers; its value goes to
// ParseIdentities.
const EnvIdentity = "IRONLOT_AGE_IDENTITY"

// elsewhere is what helps where no identity can be kept.
const elsewhere = "set IRONLOT_HOME to a directory that can be written, or give the identity itself in " + EnvIdentity

// ParseIdentities reads age identities (AGE-SECRET-KEY-1…), one a line; where
// names their origin in errors, which never hold the text itself.
func ParseIdentities(where, text string) ([]age.Identity, error) {
	identities, err := age.ParseIdentities(strings.NewReader(text))
	if err != nil {
		// The cause is left out: its text could quote key material.
		return nil, fault.Operator("make one with `age-keygen` or let the worker make it",
			"%s holds no readable age identity (a line AGE-SECRET-KEY-1…)", where)
	}
	return identities, nil
}

// LoadIdentities reads the identities of a file. A file that others may read
// is refused, and so is one that holds no identity.
func LoadIdentities(path string) ([]age.Identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Operator("name the worker's age identity file", "the age identity cannot be read: %w", err)
	}
	if err := private(path, info, 0o600); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Operator("let the worker's user read the file", "the age identity cannot be read: %w", err)
	}
	return ParseIdentities(path, string(text))
}

// LoadOrCreateIdentity reads the identities of a file; where there is no file
// it makes a new identity, mode 0600 in a directory of mode 0700. Looser modes
// are refused. Processes that start at once end up with the same identity.
func LoadOrCreateIdentity(path string) ([]age.Identity, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Operator(elsewhere, "the directory of the age identity cannot be made: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fault.Operator(elsewhere, "the directory of the age identity cannot be read: %w", err)
	}
	if err := private(dir, info, 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createIdentity(path); err != nil {
			return nil, fault.Operator(elsewhere, "a new age identity cannot be written: %w", err)
		}
	}
	return LoadIdentities(path)
}

// createIdentity writes a new identity. The link at the end is atomic and
// never replaces a file that another process has made meanwhile.
func createIdentity(path string) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".identity-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.WriteString("# public key: " + identity.Recipient().String() + "\n" + identity.String() + "\n")
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// private refuses what group or others may use.
func private(path string, info fs.FileInfo, want fs.FileMode) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fault.Operator("run `chmod "+octal(want)+" "+path+"`",
			"%s has mode %s, which lets other users at the age identity", path, octal(mode))
	}
	return nil
}

func octal(mode fs.FileMode) string {
	return string([]byte{'0', '0' + byte(mode>>6&7), '0' + byte(mode>>3&7), '0' + byte(mode&7)})
}

// Recipients gives the recipients of identities, to seal to oneself.
func Recipients(identities ...age.Identity) []age.Recipient {
	var out []age.Recipient
	for _, identity := range identities {
		if recipient := recipientOf(identity); recipient != nil {
			out = append(out, recipient)
		}
	}
	return out
}

func recipientOf(identity age.Identity) age.Recipient {
	switch identity := identity.(type) {
	case *age.X25519Identity:
		return identity.Recipient()
	case *age.HybridIdentity:
		return identity.Recipient()
	default:
		return nil
	}
}

// ParseRecipients reads age recipients (age1… or age1pq1…), one a value, and
// reports all bad ones together. A value that is no recipient is not quoted:
// it could be a secret key given by mistake.
func ParseRecipients(values ...string) ([]age.Recipient, error) {
	var recipients []age.Recipient
	var problems []error
	for i, value := range values {
		value = strings.TrimSpace(value)
		if strings.HasPrefix(value, "AGE-SECRET-KEY-") {
			problems = append(problems, fault.Operator("give its public key (age1…) and keep the secret one to the worker",
				"age recipient %d of %d is a secret key", i+1, len(values)))
			continue
		}
		parsed, err := age.ParseRecipients(strings.NewReader(value))
		if err != nil {
			problems = append(problems, fault.Operator("use the worker's public key as it prints it at its start (age1…)",
				"age recipient %d of %d is not an age public key", i+1, len(values)))
			continue
		}
		recipients = append(recipients, parsed...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(recipients) == 0 {
		return nil, fault.Operator("name the worker's public key (age1…)", "no age recipient is given")
	}
	return recipients, nil
}
