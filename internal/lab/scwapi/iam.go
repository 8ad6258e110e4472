package scwapi

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// sshKey is a public key of the account.
type sshKey struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	PublicKey      string `json:"public_key"`
	Fingerprint    string `json:"fingerprint"`
	CreatedAt      stamp  `json:"created_at"`
	UpdatedAt      stamp  `json:"updated_at"`
	OrganizationID string `json:"organization_id"`
	ProjectID      string `json:"project_id"`
	Disabled       bool   `json:"disabled"`
}

// AddSSHKey registers a public key (authorized_keys form) and gives its ID.
func (a *API) AddSSHKey(name, publicKey string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key, err := a.registerKey(name, publicKey)
	if err != nil {
		return "", err
	}
	return key.ID, nil
}

// registerKey checks and keeps a key. The caller holds the lock.
func (a *API) registerKey(name, publicKey string) (*sshKey, error) {
	line := strings.TrimSpace(publicKey)
	parsed, comment, _, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, fmt.Errorf("the public key %q is not in authorized_keys form: %w", name, err)
	}
	if len(rest) > 0 {
		return nil, errors.New("the public key has more than one line")
	}
	now := a.stamp()
	key := &sshKey{ID: a.newID(), Name: name, PublicKey: line, Fingerprint: fingerprint(parsed, comment),
		CreatedAt: now, UpdatedAt: now, OrganizationID: OrganizationID, ProjectID: ProjectID}
	a.sshKeys = append(a.sshKeys, key)
	return key, nil
}

// fingerprint is what ssh-keygen -l -E md5 prints, as the API shows it.
func fingerprint(key ssh.PublicKey, comment string) string {
	parts := []string{fmt.Sprint(bits(key)), "MD5:" + ssh.FingerprintLegacyMD5(key)}
	if comment != "" {
		parts = append(parts, comment)
	}
	return strings.Join(append(parts, "("+key.Type()+")"), " ")
}

// bits is a key's size, 0 when its kind is not known.
func bits(key ssh.PublicKey) int {
	wrapped, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return 0
	}
	switch k := wrapped.CryptoPublicKey().(type) {
	case *rsa.PublicKey:
		return k.N.BitLen()
	case *ecdsa.PublicKey:
		return k.Curve.Params().BitSize
	case ed25519.PublicKey:
		return 256
	}
	return 0
}

// sshKey gives a key, nil for none.
func (a *API) sshKey(id string) *sshKey {
	i := slices.IndexFunc(a.sshKeys, func(k *sshKey) bool { return k.ID == id })
	if i < 0 {
		return nil
	}
	return a.sshKeys[i]
}

// checkKeys refuses IDs of keys that are not registered.
func (a *API) checkKeys(ids []string) *problem {
	for _, id := range ids {
		if a.sshKey(id) == nil {
			return noResource("ssh_key", id)
		}
	}
	return nil
}

// authorizedKeys are the keys of the installation and, as the SDK documents
// ssh_key_ids, the additional ones of this boot.
func (a *API) authorizedKeys(s *server, additional []string) []string {
	ids := slices.Clone(additional)
	if s.Install != nil {
		ids = append(slices.Clone(s.Install.SSHKeyIDs), ids...)
	}
	var lines []string
	for _, id := range ids {
		if key := a.sshKey(id); key != nil && !slices.Contains(lines, key.PublicKey) {
			lines = append(lines, key.PublicKey)
		}
	}
	return lines
}

func (a *API) listSSHKeys(r *request) (any, *problem) {
	query := r.URL.Query()
	var found []sshKey
	for _, k := range a.sshKeys {
		if strings.Contains(k.Name, query.Get("name")) &&
			wants(query["project_id"], k.ProjectID) &&
			wants(query["organization_id"], k.OrganizationID) &&
			wants(query["disabled"], fmt.Sprint(k.Disabled)) {
			found = append(found, *k)
		}
	}
	return page(r, "ssh_keys", found)
}

func (a *API) createSSHKey(r *request) (any, *problem) {
	var body struct {
		Name      string `json:"name"`
		PublicKey string `json:"public_key"`
	}
	if p := r.decode(&body); p != nil {
		return nil, p
	}
	key, err := a.registerKey(body.Name, body.PublicKey)
	if err != nil {
		return nil, invalid("public_key", "is not a public key")
	}
	return *key, nil
}

func (a *API) getSSHKey(r *request) (any, *problem) {
	key := a.sshKey(r.PathValue("key"))
	if key == nil {
		return nil, noResource("ssh_key", r.PathValue("key"))
	}
	return *key, nil
}

func (a *API) deleteSSHKey(r *request) (any, *problem) {
	key := a.sshKey(r.PathValue("key"))
	if key == nil {
		return nil, noResource("ssh_key", r.PathValue("key"))
	}
	a.sshKeys = slices.DeleteFunc(a.sshKeys, func(other *sshKey) bool { return other == key })
	return nil, nil
}
