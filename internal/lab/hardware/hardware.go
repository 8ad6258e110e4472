// Package hardware is what the lab's provider can do to a machine of the
// lab, whatever kind it is: simulated in this process or a QEMU guest.
package hardware

// BootType is what the firmware is told to boot.
type BootType string

// The boot types.
const (
	BootNormal BootType = "normal" // from the first disk with a boot signature
	BootRescue BootType = "rescue" // the provider's rescue system over the network
)

// Rescue is what the provider's rescue system is given at a boot.
type Rescue struct {
	User           string
	Password       string   // for sudo
	AuthorizedKeys []string // authorized_keys lines
}

// Machine is the metal: power and boot type. A reset from inside the
// machine boots again with the boot type that was set last.
type Machine interface {
	// PowerOn boots with a boot type; a running machine is reset abruptly.
	PowerOn(boot BootType, rescue Rescue) error
	// PowerOff stops the machine abruptly.
	PowerOff() error
	// Address is the machine's IP address.
	Address() string
	// Close powers off and removes what the machine keeps.
	Close() error
}
