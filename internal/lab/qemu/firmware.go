package qemu

import (
	"fmt"

	"github.com/ironlot/ironlot/internal/lab/hardware"
)

// chooseBoot is the firmware before the BIOS. It boots nothing at all, not
// even over the network, while a disk has no boot signature: seen in the
// field. Then it takes rescue, or the first disk, by slot, with a boot loader
// and partitions; an empty partition table is passed over. From there on the
// disk's own boot loader runs.
func chooseBoot(disks []disk, as hardware.BootType) (slot int, ok bool, reason string) {
	for i, d := range disks {
		if !d.hasBootSignature() {
			return -1, false, fmt.Sprintf("no boot signature on the disk in slot %d (%s), boot stopped", i+1, d.spec.Serial)
		}
	}
	if as == hardware.BootRescue {
		return -1, true, "booting rescue over the network"
	}
	for i, d := range disks {
		if d.hasSystem() {
			return i, true, fmt.Sprintf("booting from slot %d (%s)", i+1, d.spec.Serial)
		}
	}
	return -1, false, "no system on any disk"
}
