package simulated

import (
	"fmt"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

type bootKind int

const (
	bootNothing bootKind = iota
	bootRescue
	bootOS
	bootTalos
)

type bootChoice struct {
	kind bootKind
	slot int // of the disk
}

// chooseBoot is the firmware. It boots nothing at all, not even over the
// network, while a disk has no boot signature: seen in the field. Otherwise
// it boots rescue, or the first disk, by slot, on which there is a system; a
// disk with an empty partition table is passed over.
func chooseBoot(disks []*disk, as hardware.BootType, ignoreRescue bool) (bootChoice, string) {
	for _, d := range disks {
		if !layout.HasBootSignature(d.f) {
			return bootChoice{}, fmt.Sprintf("no boot signature on the disk in slot %d (%s), boot stopped", d.slot, d.spec.Serial)
		}
	}
	if as == hardware.BootRescue && !ignoreRescue {
		return bootChoice{kind: bootRescue}, "booting rescue over the network"
	}
	for _, d := range disks {
		switch parts := layout.Read(d.f, d.spec.Size); {
		case isTalos(parts):
			return bootChoice{bootTalos, d.slot}, fmt.Sprintf("booting Talos from slot %d (%s)", d.slot, d.spec.Serial)
		case isDelivered(parts):
			return bootChoice{bootOS, d.slot}, fmt.Sprintf("booting the delivered system from slot %d (%s)", d.slot, d.spec.Serial)
		}
	}
	return bootChoice{}, "no system on any disk"
}

// isTalos recognises what Talos 1.13 needs of its disk: an EFI partition
// with the boot loader, and META.
func isTalos(parts []layout.Part) bool {
	_, efi := layout.Find(parts, layout.EFI)
	_, meta := layout.Find(parts, layout.Meta)
	return efi && meta
}

func isDelivered(parts []layout.Part) bool {
	_, esp := layout.Find(parts, deliveredESP)
	_, root := layout.Find(parts, deliveredRoot)
	return esp && root
}
