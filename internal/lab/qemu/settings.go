package qemu

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/lab/hardware"
)

// hostKey is an SSH host key.
type hostKey struct {
	pem         []byte
	fingerprint string // SHA256:…
}

func newHostKey() (hostKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return hostKey{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return hostKey{}, err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return hostKey{}, err
	}
	return hostKey{pem.EncodeToMemory(block), ssh.FingerprintSHA256(key)}, nil
}

// linuxSettings is the tar file that a Linux of the lab unpacks at its boot.
func linuxSettings(login hardware.Rescue, key hostKey, faults Faults) ([]byte, error) {
	options := ""
	if faults.SHMSize != "" {
		options += "SHM_SIZE=" + quote(faults.SHMSize) + "\n"
	}
	if faults.HideTools != "" {
		options += "HIDE_TOOLS=" + quote(faults.HideTools) + "\n"
	}
	if faults.HideArrays {
		options += "HIDE_ARRAYS=yes\n"
	}
	files := map[string]string{
		"user": login.User, "password": login.Password, "authorized_keys": strings.Join(login.AuthorizedKeys, "\n") + "\n",
		"host_key": string(key.pem), "options": options,
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// quote makes one word of a text for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// writeSettings writes what the next boot finds, each into a file of its own
// that only this user reads: there are passwords and keys in it.
func (m *Machine) writeSettings(login hardware.Rescue, key hostKey, faults Faults) (map[string]string, error) {
	linux, err := linuxSettings(login, key, faults)
	if err != nil {
		return nil, err
	}
	node, err := json.Marshal(m.talosSettings())
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, data := range map[string][]byte{"settings": linux, "talos": node} {
		path := filepath.Join(m.opts.Dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, fmt.Errorf("cannot write the settings of the boot: %w", err)
		}
		files[name] = path
	}
	return files, nil
}
