package home_test

import (
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/home"
)

// env is an environment of the given variables alone.
func env(vars map[string]string) func(string) (string, bool) {
	return func(key string) (string, bool) { v, ok := vars[key]; return v, ok }
}

func open(t *testing.T, vars map[string]string) *home.Home {
	t.Helper()
	if vars == nil {
		vars = map[string]string{}
	}
	if vars[home.EnvHome] == "" {
		vars[home.EnvHome] = filepath.Join(t.TempDir(), "state")
	}
	h, err := home.Open(env(vars))
	require.NoError(t, err)
	return h
}

func TestOpen(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for want, vars := range map[string]map[string]string{
		base + "/own":                     {home.EnvHome: base + "/own", "XDG_STATE_HOME": base + "/xdg", "HOME": base},
		base + "/xdg/ironlot":             {"XDG_STATE_HOME": base + "/xdg", "HOME": base},
		base + "/me/.local/state/ironlot": {"XDG_STATE_HOME": "relative", "HOME": base + "/me"},
	} {
		h, err := home.Open(env(vars))
		require.NoError(t, err)
		require.Equal(t, want, h.Dir)
		info, err := os.Stat(want)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	_, err := home.Open(env(nil))
	require.ErrorContains(t, err, "neither IRONLOT_HOME nor HOME is set")

	file := filepath.Join(base, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = home.Open(env(map[string]string{home.EnvHome: file}))
	require.Error(t, err)

	loose := filepath.Join(base, "loose")
	require.NoError(t, os.Mkdir(loose, 0o700))
	require.NoError(t, os.Chmod(loose, 0o750))
	_, err = home.Open(env(map[string]string{home.EnvHome: loose}))
	require.ErrorContains(t, err, "has mode 0750, which lets other users in; run `chmod 0700 "+loose+"`")
	entries, err := os.ReadDir(loose)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is written into a loose directory")
}

func TestRecipients(t *testing.T) {
	t.Parallel()
	a, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	b, err := age.GenerateX25519Identity()
	require.NoError(t, err)

	own := open(t, nil)
	first, err := own.Recipients()
	require.NoError(t, err)
	require.Len(t, first, 1)
	again, err := own.Recipients()
	require.NoError(t, err)
	require.Equal(t, first, again, "the identity is made once")

	require.NoError(t, os.WriteFile(own.RecipientsFile(), []byte("# workers\n"+a.Recipient().String()+"\n\n"+b.Recipient().String()+"\n"), 0o600))
	both, err := own.Recipients()
	require.NoError(t, err)
	require.Equal(t, []age.Recipient{a.Recipient(), b.Recipient()}, both)

	named := open(t, map[string]string{home.EnvRecipients: b.Recipient().String()})
	one, err := named.Recipients()
	require.NoError(t, err)
	require.Equal(t, []age.Recipient{b.Recipient()}, one)
	require.NoFileExists(t, named.IdentityFile(), "no identity is made when it is not used")

	_, err = open(t, map[string]string{home.EnvRecipients: a.String()}).Recipients()
	require.ErrorContains(t, err, "IRONLOT_RECIPIENTS: age recipient 1 of 1 is a secret key")
	require.NotContains(t, err.Error(), a.String())
}

func TestLock(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	_, ok := h.Up()
	require.False(t, ok)

	lock, err := h.Lock()
	require.NoError(t, err)
	_, err = h.Lock()
	require.ErrorContains(t, err, "another `up` uses "+h.Dir)

	want := home.Up{Address: "127.0.0.1:7233", WebUI: "http://127.0.0.1:8233", PID: 17}
	require.NoError(t, lock.Tell(want))
	got, ok := h.Up()
	require.True(t, ok)
	require.Equal(t, want, got)
	_, err = h.Lock()
	require.ErrorContains(t, err, "another `up` (process 17, Temporal on 127.0.0.1:7233)")

	require.NoError(t, lock.Unlock())
	_, ok = h.Up()
	require.False(t, ok)
	lock, err = h.Lock()
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
}
