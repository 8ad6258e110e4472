//go:build linux

package inventory_test

import (
	"regexp"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/inventory"
	"github.com/ironlot/ironlot/internal/agent/looptest"
)

// TestVolumeGroup reads what the real LVM wrote.
func TestVolumeGroup(t *testing.T) {
	t.Parallel()
	d := looptest.New(t, "inventory-lvm", 64*mib, 512)
	only := `devices { filter = [ "a|` + d.Path + `$|", "r|.*|" ] use_devicesfile = 0 }`
	looptest.Tool(t, "lvm", "pvcreate", "--config", only, "-ff", "-y", d.Path)
	looptest.Tool(t, "lvm", "vgcreate", "--config", only, "inventory-vg", d.Path)
	inv, err := inventory.Take(t.Context(), looptest.Host(t, d))
	if err != nil {
		t.Fatal(err)
	}
	s := inv.Disks[0].Signatures
	if len(s) != 1 || s[0].Type != "LVM2_member" || s[0].Label != "inventory-vg" || !regexp.MustCompile(`^[A-Za-z0-9]{6}(-[A-Za-z0-9]{4}){5}-[A-Za-z0-9]{6}$`).MatchString(s[0].Set) {
		t.Errorf("%+v", s)
	}
}
