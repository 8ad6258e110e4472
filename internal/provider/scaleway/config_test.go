package scaleway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/provider/scaleway"
)

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

const (
	canary    = "11111111-2222-4333-8444-555555555555"
	accessKey = "SCW12345678901234567"
)

// cleanEnv takes all of the SDK's variables away and gives a home.
func cleanEnv(t *testing.T) string {
	t.Helper()
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "SCW_") || strings.HasPrefix(name, "SCALEWAY_") {
			t.Setenv(name, "") // restores it afterwards
			require.NoError(t, os.Unsetenv(name))
		}
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	return home
}

func writeConfig(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestMissingCredentialsNameThePlaces(t *testing.T) {
	home := cleanEnv(t)
	_, err := scaleway.New(scaleway.Config{})
	e := refused(t, fault.NeedsOperator, err)
	assert.Contains(t, e.Error(), filepath.Join(home, ".config/scw/config.yaml"))
	assert.Contains(t, e.Error(), "SCW_ACCESS_KEY")
	assert.Contains(t, e.Error(), "SCW_SECRET_KEY")

	t.Setenv("SCW_ACCESS_KEY", accessKey)
	t.Setenv("SCW_SECRET_KEY", "") // set but empty is not set
	_, err = scaleway.New(scaleway.Config{})
	e = refused(t, fault.NeedsOperator, err)
	assert.NotContains(t, e.Message, "access key (")
	assert.Contains(t, e.Message, "secret key (")
}

func TestFileProfileAndEnvironment(t *testing.T) {
	home := cleanEnv(t)
	api := scwapi.New(scwapi.Options{Keys: []scwapi.Key{{AccessKey: accessKey, SecretKey: canary}}})
	server, err := api.AddServer(scwapi.ServerSpec{Name: "metal-1"})
	require.NoError(t, err)
	url := serve(t, api)
	path := filepath.Join(home, ".config/scw/config.yaml")
	works := func(cfg scaleway.Config) error {
		c, err := scaleway.New(cfg)
		if err != nil {
			return err
		}
		_, err = c.Describe(context.Background(), "fr-par-2", server.ID)
		return err
	}

	writeConfig(t, path, fmt.Sprintf("access_key: %s\nsecret_key: %s\napi_url: %s/\n", accessKey, canary, url))
	require.NoError(t, works(scaleway.Config{}), "the default profile")

	other := "00000000-0000-4000-8000-000000000001"
	writeConfig(t, path, fmt.Sprintf(
		"access_key: %s\nsecret_key: %s\napi_url: %s\nprofiles:\n  work:\n    secret_key: %s\n", accessKey, other, url, canary))
	refused(t, fault.NeedsOperator, works(scaleway.Config{}))
	require.NoError(t, works(scaleway.Config{Profile: "work"}), "a profile over the default one")
	t.Setenv("SCW_PROFILE", "work")
	require.NoError(t, works(scaleway.Config{}))
	t.Setenv("SCW_SECRET_KEY", other)
	refused(t, fault.NeedsOperator, works(scaleway.Config{}))
	t.Setenv("SCW_SECRET_KEY", canary)
	t.Setenv("SCW_PROFILE", "play")
	e := refused(t, fault.NeedsOperator, works(scaleway.Config{}))
	assert.Contains(t, e.Message, `"play"`)

	t.Setenv("SCW_PROFILE", "")
	t.Setenv("SCW_CONFIG_PATH", filepath.Join(home, "none.yaml"))
	refused(t, fault.NeedsOperator, works(scaleway.Config{}))
	writeConfig(t, filepath.Join(home, "mine.yml"), "access_key: "+accessKey+"\n")
	t.Setenv("SCW_API_URL", url)
	require.NoError(t, works(scaleway.Config{File: filepath.Join(home, "mine.yml")}), "the rest from the environment")
}

func TestBadSettingsNeverQuoteTheSecret(t *testing.T) {
	home := cleanEnv(t)
	path := filepath.Join(home, "config.yaml")
	for name, content := range map[string]string{
		"not YAML":       "secret_key: " + canary + "\n\t- x",
		"wrong type":     "profiles: " + canary,
		"no UUID":        "access_key: " + accessKey + "\nsecret_key: x" + canary,
		"swapped":        "access_key: " + canary + "\nsecret_key: " + accessKey,
		"URL with a key": "access_key: " + accessKey + "\nsecret_key: " + canary + "\napi_url: https://me:" + canary + "@example.com",
		"no URL":         "access_key: " + accessKey + "\nsecret_key: " + canary + "\napi_url: ftp://example.com",
		"bad region":     "access_key: " + accessKey + "\nsecret_key: " + canary + "\ndefault_region: mars",
	} {
		writeConfig(t, path, content)
		_, err := scaleway.New(scaleway.Config{File: path})
		refused(t, fault.NeedsOperator, err)
		assert.NotContains(t, err.Error(), canary, name)
	}
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", scaleway.Credentials{SecretKey: canary},
		scaleway.Config{Credentials: &scaleway.Credentials{SecretKey: canary}}, scaleway.Credentials{SecretKey: canary}), canary)
}

// TestDebugLogHoldsNoSecret runs itself again with SCW_DEBUG, which the SDK
// reads once at its start, and looks at all that the process prints.
func TestDebugLogHoldsNoSecret(t *testing.T) {
	if os.Getenv("IRONLOT_TEST_CHILD") != "" {
		l := newLab(t, scwapi.ServerSpec{BootType: "rescue"})
		password, err := l.RescuePassword(context.Background(), zone, l.server.ID)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(os.Getenv("IRONLOT_TEST_CHILD"), []byte(password), 0o600))
		return
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	child := exec.Command(os.Args[0], "-test.run=^TestDebugLogHoldsNoSecret$", "-test.v")
	child.Env = append(os.Environ(), "SCW_DEBUG=true", "IRONLOT_TEST_CHILD="+file)
	printed, err := child.CombinedOutput()
	require.NoError(t, err, string(printed))
	password, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(printed, []byte("DEBUG")), "the SDK's debug log is on")
	assert.NotContains(t, string(printed), string(password))
	assert.NotContains(t, string(printed), scwapi.DefaultKey().SecretKey)
}
