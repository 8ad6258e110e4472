package lot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/lot/lottest"
)

// TestWarningsOfTheLot: what only lot and config together tell.
func TestWarningsOfTheLot(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 1) // its node keeps its other disks
	dir := filepath.Dir(path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	edited := strings.Replace(string(text), "127.0.0.1:9/", "127.0.0.1:9/v1.14.1/", 1)
	edited = strings.Replace(edited, "defaults:\n", "defaults:\n  patches: [longhorn.yaml]\n", 1)
	require.NoError(t, os.WriteFile(path, []byte(edited), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longhorn.yaml"), []byte("apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: longhorn\nprovisioning:\n  diskSelector:\n    match: \"!system_disk\"\n  minSize: 1GiB\n"), 0o600))
	l, err := lot.Load(path)
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	warnings := strings.Join(rendered.Warnings, "\n")
	require.Contains(t, warnings, "node-1: the image is of Talos v1.14")
	require.Contains(t, warnings, "node-1: the config has the user volume longhorn")
}

// TestConfigTooLongForState is refused while nothing is touched.
func TestConfigTooLongForState(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 1)
	dir := filepath.Dir(path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	edited := strings.Replace(string(text), "defaults:\n", "defaults:\n  delivery: state\n  patches: [long.yaml]\n", 1)
	require.NoError(t, os.WriteFile(path, []byte(edited), 0o600))
	long := "machine:\n  env:\n    A: " + strings.Repeat("x", 600<<10) + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long.yaml"), []byte(long), 0o600))
	l, err := lot.Load(path)
	require.NoError(t, err)
	_, err = l.Render(t.Context())
	require.ErrorContains(t, err, "STATE is made for at most 524288; make it smaller, or use `delivery: maintenance`")
}

func TestWarningsOfTheFile(t *testing.T) {
	t.Parallel()
	for change, want := range map[[2]string]string{
		{"rescue: {fresh: true}", "rescue: {port: 2222}"}:                                    "rescue.port or talosPort differ from 22 and 50000, which every real server uses",
		{"rescue: {fresh: true}", "talosPort: 50001"}:                                        "rescue.port or talosPort differ from 22 and 50000, which every real server uses",
		{"metal-amd64.raw.zst", "metal-amd64.raw.zst?a=b"}:                                   "the image's URL has a query, which every run's history shows in clear; make sure that it holds no secret",
		{"  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF\n", ""}: "the image has no digest, so nothing tells a changed or damaged download from the right one; add image.sha256 or image.rawSha256",
	} {
		l, _, err := load(t, strings.Replace(good, change[0], change[1], 1))
		require.NoError(t, err)
		require.Equal(t, []string{want}, l.Warnings)
	}
}

func TestFileThatIsTooLarge(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "one", 1)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "worker.yaml"), make([]byte, lot.MaxBytes+1), 0o600))
	_, err := lot.Load(path)
	require.ErrorContains(t, err, `names "worker.yaml": is larger than 1024 KiB; check that it is the right file`)
}

// TestWarningsOfTheRollout: what does nothing with so few nodes is told.
func TestWarningsOfTheRollout(t *testing.T) {
	t.Parallel()
	for rollout, want := range map[string][]string{
		"{canary: 2, maxStuck: 1, parallel: 9}": nil,
		"{canary: 5}":                           {"rollout.canary is 5 and there are 2 nodes: each of them is a canary, none waits for another, and so it is with the next 3 that are added"},
		"{maxStuck: 2}":                         {"rollout.maxStuck is 2 and there are 2 nodes: the lot does not pause itself even when all of them are stuck"},
		"{maxStuck: 0}":                         nil,
	} {
		path := lottest.Lot(t, "rack-1", 2)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, append(text, "rollout: "+rollout+"\n"...), 0o600))
		l, err := lot.Load(path)
		require.NoError(t, err)
		rendered, err := l.Render(t.Context())
		require.NoError(t, err)
		var got []string
		for _, w := range rendered.Warnings {
			if strings.HasPrefix(w, "rollout") {
				got = append(got, w)
			}
		}
		require.Equal(t, want, got, rollout)
	}
}
