package talos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

func TestVersionTraps(t *testing.T) {
	t.Parallel()
	url := func(version string) string {
		return "https://factory.talos.dev/image/376567/" + version + "/metal-amd64.raw.zst"
	}
	render := func(in talos.RenderInput) *talos.Rendered {
		r, err := talos.Render(in)
		require.NoError(t, err)
		return r
	}
	multi, single := render(talos.RenderInput{Base: worker(t)}), render(talos.RenderInput{Base: legacy(t)})
	for _, c := range []struct {
		config *talos.Rendered
		url    string
		want   string // empty: no warning
	}{
		{multi, url("v1.13.8"), ""},
		{multi, url("v1.13.0-beta.1"), ""},
		{multi, "http://images.example/metal.raw", ""},
		{multi, url("v1.14.0"), "the image is of Talos v1.14, and the config was checked for v1.13: a newer Talos"},
		{multi, url("v1.11.5"), "its network documents (HostnameConfig"},
		{single, url("v1.11.5"), "an older Talos refuses what it does not know"},
		{multi, url("v1.12.1"), "an older Talos refuses what it does not know"},
	} {
		got := c.config.VersionTraps(c.url)
		if c.want == "" {
			require.Empty(t, got, c.url)
			continue
		}
		require.Len(t, got, 1, c.url)
		require.Contains(t, got[0], c.want)
	}
}

func TestUserVolumes(t *testing.T) {
	t.Parallel()
	r, err := talos.Render(talos.RenderInput{Base: worker(t), Patches: []talos.Named{patch("longhorn.yaml",
		"apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: longhorn\nprovisioning:\n  diskSelector:\n    match: \"!system_disk\"\n  minSize: 1GiB\n  grow: true\n")}})
	require.NoError(t, err)
	require.Equal(t, []run.UserVolume{{Name: "longhorn", Match: "!system_disk", MinSize: 1 << 30}}, r.UserVolumes)
}
