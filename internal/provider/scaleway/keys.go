package scaleway

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/fault"
)

// SSHKeyIDs implements provider.Provider: one ID for each public key that is
// registered and enabled, in the order of the keys. A key registered in
// several projects counts in the default project before any other.
func (c *Client) SSHKeyIDs(ctx context.Context, publicKeys []string) ([]string, error) {
	wanted := make([]ssh.PublicKey, 0, len(publicKeys))
	for i, line := range publicKeys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fault.Operator("give it as a line of authorized_keys, such as the .pub file's",
				"public key %d of %d cannot be read: %w", i+1, len(publicKeys), err)
		}
		wanted = append(wanted, key)
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	registered, err := c.sshKeys(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, key := range wanted {
		if id := c.match(registered, key); id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// sshKeys lists the registered keys. The SDK's ListSSHKeys is not used: it
// also fetches metadata, past the context and into an unguarded field, which
// two callers at once may not do.
func (c *Client) sshKeys(ctx context.Context) ([]*iam.SSHKey, error) {
	var resp iam.ListSSHKeysResponse
	err := c.sdk.Do(&scw.ScalewayRequest{
		Method: http.MethodGet,
		Path:   "/iam/v1alpha1/ssh-keys",
		Query:  url.Values{"page_size": {"100"}},
	}, &resp, scw.WithContext(ctx), scw.WithAllPages())
	if err != nil {
		return nil, c.fail("list the account's SSH keys", err)
	}
	return resp.SSHKeys, nil
}

// match finds the ID of a key, empty when it is not registered.
func (c *Client) match(registered []*iam.SSHKey, key ssh.PublicKey) string {
	project, _ := c.sdk.GetDefaultProjectID()
	found := ""
	for _, r := range registered {
		if r == nil || r.Disabled {
			continue
		}
		candidate, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.PublicKey))
		if err != nil || !bytes.Equal(candidate.Marshal(), key.Marshal()) {
			continue
		}
		if r.ProjectID == project {
			return r.ID
		}
		if found == "" {
			found = r.ID
		}
	}
	return found
}
