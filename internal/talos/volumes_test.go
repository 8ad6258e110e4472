package talos_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

func TestVolumeFitsTheDisks(t *testing.T) {
	t.Parallel()
	system := run.Disk{Name: "sda", Serial: "A", Model: "SSD", Size: 500e9}
	second := run.Disk{Name: "sdb", Serial: "B", Model: "HDD 4T", Size: 4000e9}
	both := []run.Disk{system, second}
	for _, c := range []struct {
		match       string
		minSize     string
		disks       []run.Disk
		fits, known bool
	}{
		{"!system_disk", "1GiB", both, true, true},
		{"!system_disk", "1GiB", []run.Disk{system}, false, true},
		{"!system_disk", "5TB", both, false, true},
		{"system_disk", "1GiB", both, true, true},
		{"disk.size > 1u * TB && !system_disk", "1GiB", both, true, true},
		{`disk.model == "NVMe"`, "1GiB", both, false, true},
		{`disk.transport == "nvme"`, "1GiB", both, false, false},
		{`disk.serial == "B"`, "1GiB", both, false, false},
	} {
		document := fmt.Sprintf("apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: longhorn\nprovisioning:\n  diskSelector:\n    match: '%s'\n  minSize: %s\n", c.match, c.minSize)
		r, err := talos.Render(talos.RenderInput{Base: worker(t), Patches: []talos.Named{patch("volume.yaml", document)}, Hostname: "node-1"})
		require.NoError(t, err, c.match)
		require.Len(t, r.UserVolumes, 1)
		require.Equal(t, "longhorn", r.UserVolumes[0].Name)
		fits, known := talos.VolumeFits(r.UserVolumes[0], c.disks, system)
		require.Equal(t, [2]bool{c.fits, c.known}, [2]bool{fits, known}, "%+v", c)
	}
}
