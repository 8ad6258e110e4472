package seal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/seal"
)

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	return id
}

func TestAnyRecipientOpens(t *testing.T) {
	t.Parallel()
	a, b := identity(t), identity(t)
	for name, plain := range map[string][]byte{
		"empty": {},
		"text":  []byte("machine:\n  token: very-secret\n"),
		"large": bytes.Repeat([]byte("machine config "), 100_000),
	} {
		sealed, err := seal.Seal(plain, a.Recipient(), b.Recipient())
		require.NoError(t, err, name)
		require.True(t, strings.HasPrefix(sealed, "-----BEGIN AGE ENCRYPTED FILE-----"), name)
		require.NotContains(t, sealed, "very-secret")
		require.Less(t, len(sealed), len(plain)+2000, name)
		for _, id := range []age.Identity{a, b} {
			got, err := seal.Open(sealed, id)
			require.NoError(t, err, name)
			require.True(t, bytes.Equal(plain, got), name)
		}
	}
}

func TestOthersCannotOpen(t *testing.T) {
	t.Parallel()
	owner, other := identity(t), identity(t)
	sealed, err := seal.Seal([]byte("very-secret"), owner.Recipient())
	require.NoError(t, err)

	plain, err := seal.Open(sealed, other)
	require.Empty(t, plain)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.ErrorContains(t, err, "sealed to other recipients")
	require.ErrorContains(t, err, other.Recipient().String(), "the worker's own public key helps to find the right one")
	require.NotContains(t, err.Error(), other.String())
}

func TestDamagedValues(t *testing.T) {
	t.Parallel()
	id := identity(t)
	sealed, err := seal.Seal([]byte("very-secret"), id.Recipient())
	require.NoError(t, err)
	lines := strings.Split(sealed, "\n")
	foreign := sealRaw(t, id, []byte("not zstd"))

	for name, value := range map[string]string{
		"empty":     "",
		"not age":   "hello",
		"truncated": sealed[:len(sealed)/2],
		"line lost": strings.Join(append(lines[:2:2], lines[3:]...), "\n"),
		"not ours":  foreign,
	} {
		plain, err := seal.Open(value, id)
		require.Error(t, err, name)
		require.Empty(t, plain, name)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), name)
		require.NotContains(t, err.Error(), "very-secret", name)
	}
}

func TestNothingToSealToOrOpenWith(t *testing.T) {
	t.Parallel()
	_, err := seal.Seal([]byte("very-secret"))
	require.ErrorContains(t, err, "without a recipient")
	_, err = seal.Seal(make([]byte, 16<<20+1), identity(t).Recipient())
	require.ErrorContains(t, err, "more than")
	_, err = seal.Open("x")
	require.ErrorContains(t, err, "without an identity")
}

func TestLoadOrCreateIdentity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys", "identity.txt")

	// Workers that start at once share one identity.
	keys := make([]string, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			ids, err := seal.LoadOrCreateIdentity(path)
			if err == nil && len(ids) == 1 {
				keys[i] = ids[0].(*age.X25519Identity).String()
			}
		})
	}
	wg.Wait()
	for _, key := range keys {
		require.NotEmpty(t, key)
		require.Equal(t, keys[0], key)
	}

	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file stays")
}

func TestLooseModesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	path := filepath.Join(dir, "identity.txt")
	_, err := seal.LoadOrCreateIdentity(path)
	require.NoError(t, err)

	require.NoError(t, os.Chmod(path, 0o640))
	for _, load := range []func(string) ([]age.Identity, error){seal.LoadIdentities, seal.LoadOrCreateIdentity} {
		_, err = load(path)
		require.ErrorContains(t, err, "has mode 0640")
		require.ErrorContains(t, err, "chmod 0600 "+path)
	}
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err = seal.LoadOrCreateIdentity(path)
	require.ErrorContains(t, err, "chmod 0700 "+dir)

	fresh := filepath.Join(dir, "other.txt")
	_, err = seal.LoadOrCreateIdentity(fresh)
	require.Error(t, err)
	require.NoFileExists(t, fresh, "nothing is written into a loose directory")

	_, err = seal.LoadOrCreateIdentity(filepath.Join(path, "below", "a-file.txt"))
	require.ErrorContains(t, err, "the directory of the age identity cannot be made")
	require.ErrorContains(t, err, "IRONLOT_HOME")
}

func TestIdentityErrorsHideKeys(t *testing.T) {
	t.Parallel()
	broken := identity(t).String()[:40]
	path := filepath.Join(t.TempDir(), "identity.txt")
	require.NoError(t, os.WriteFile(path, []byte(broken), 0o600))
	_, err := seal.LoadIdentities(path)
	require.ErrorContains(t, err, path)
	require.NotContains(t, err.Error(), broken[16:])

	_, err = seal.LoadIdentities(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)

	_, err = seal.ParseIdentities("IRONLOT_AGE_IDENTITY", "# only a comment\n")
	require.ErrorContains(t, err, "IRONLOT_AGE_IDENTITY")
}

func TestParseRecipients(t *testing.T) {
	t.Parallel()
	a, b := identity(t), identity(t)
	got, err := seal.ParseRecipients(a.Recipient().String(), " "+b.Recipient().String()+"\n")
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, got, seal.Recipients(a, b))

	_, err = seal.ParseRecipients("nonsense", a.String(), b.Recipient().String())
	require.ErrorContains(t, err, "recipient 1 of 3 is not an age public key")
	require.ErrorContains(t, err, "recipient 2 of 3 is a secret key")
	require.NotContains(t, err.Error(), a.String())
	require.NotContains(t, err.Error(), "nonsense")

	_, err = seal.ParseRecipients()
	require.ErrorContains(t, err, "no age recipient")
}

// sealRaw encrypts without compressing.
func sealRaw(t *testing.T, id *age.X25519Identity, plain []byte) string {
	t.Helper()
	var out bytes.Buffer
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, id.Recipient())
	require.NoError(t, err)
	_, err = w.Write(plain)
	require.NoError(t, errors.Join(err, w.Close(), armored.Close()))
	return out.String()
}

// TestIdentityThatCannotBeKept: where the file or its folder is in the way.
func TestIdentityThatCannotBeKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	_, err := seal.LoadOrCreateIdentity(filepath.Join(file, "identity"))
	require.ErrorContains(t, err, "the directory of the age identity cannot be made: mkdir "+file)
	require.ErrorContains(t, err, "set IRONLOT_HOME to a directory that can be written")

	_, err = seal.LoadOrCreateIdentity(filepath.Join(dir, strings.Repeat("x", 300)))
	require.ErrorContains(t, err, "the age identity cannot be read")

	_, err = seal.LoadIdentities(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "the age identity cannot be read")
	require.ErrorContains(t, err, "name the worker's age identity file")

	folder := filepath.Join(dir, "folder")
	require.NoError(t, os.Mkdir(folder, 0o700))
	_, err = seal.LoadIdentities(folder)
	require.ErrorContains(t, err, "let the worker's user read the file")
	for _, path := range []string{folder, file} {
		_, err = seal.LoadIdentities(path)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), path)
	}
}
