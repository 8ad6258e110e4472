package plan

import (
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// Action is what a step does.
type Action string

// The actions, with the tool that the executor runs for those that need one.
const (
	Unmount    Action = "unmount"
	SwapOff    Action = "swapoff"
	Deactivate Action = "deactivate" // lvm lvchange --activate n GROUP/VOLUME
	Remove     Action = "remove"     // dmsetup remove --retry NAME
	Stop       Action = "stop"       // mdadm --stop /dev/NAME
	Wipe       Action = "wipe"       // zeros over what partitions hold
	Blank      Action = "blank"      // zeros at both ends of the disk, and a blank GPT
)

// Step is one thing to do.
type Step struct {
	Action Action `json:"action"`
	// Target is the mount point, swap, logical volume, dm or md name; for Wipe
	// and Blank the disk in words.
	Target string `json:"target"`
	// Disk is the disk of Wipe and Blank, with its name on this boot.
	Disk *api.Disk `json:"disk,omitempty"`
	// Ranges are what Wipe zeroes, in the order of the disk.
	Ranges []Range `json:"ranges,omitempty"`
	// Clears names what a person loses.
	Clears []string `json:"clears,omitempty"`
}

// Range is a range of bytes from the start of the disk.
type Range struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// Tool is the tool's command line, nil for a step that needs none.
func (s Step) Tool() []string {
	switch s.Action {
	case Deactivate:
		return []string{"lvm", "lvchange", "--activate", "n", s.Target}
	case Remove:
		return []string{"dmsetup", "remove", "--retry", s.Target}
	case Stop:
		return []string{"mdadm", "--stop", "/dev/" + s.Target}
	default:
		return nil
	}
}

// Destroys reports whether the step erases data.
func (s Step) Destroys() bool { return s.Action == Wipe || s.Action == Blank }

// String says the step to a person.
func (s Step) String() string {
	text := string(s.Action) + " " + s.Target
	if tool := s.Tool(); tool != nil {
		text += " (" + strings.Join(tool, " ") + ")"
	}
	if len(s.Clears) > 0 {
		text += ", clearing " + strings.Join(s.Clears, ", ")
	}
	return text
}

// Plan is what disk-prep does, in order. Verification follows in any case.
type Plan struct {
	Disks []api.Disk `json:"disks"` // handed over, the system disk first
	Steps []Step     `json:"steps"`
}

// Clean reports whether there is nothing to do but to verify.
func (p Plan) Clean() bool { return len(p.Steps) == 0 }

// String says the plan to a person, one line a step.
func (p Plan) String() string {
	var b strings.Builder
	for i, d := range p.Disks {
		role := "secondary disk"
		if i == 0 {
			role = "system disk"
		}
		fmt.Fprintf(&b, "%s: %s\n", role, Describe(d))
	}
	if p.Clean() {
		b.WriteString("nothing to do: the disks are blank; they are verified only\n")
	}
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, s)
	}
	return b.String()
}
