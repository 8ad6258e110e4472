// Package provider is what Ironlot needs of a company that rents servers.
package provider

import "context"

// BootType is what a server boots into.
type BootType string

// The boot types.
const (
	BootNormal BootType = "normal"
	BootRescue BootType = "rescue"
)

// Server is a rented server as its provider shows it. It never holds the
// rescue password.
type Server struct {
	ID         string
	Name       string
	Zone       string
	Status     string // the provider's word
	Settled    bool   // the status is not one that passes by itself
	Usable     bool   // the status allows a reboot
	BootType   BootType
	Protected  bool
	Addresses  []string // public, IPv4 first
	RescueUser string   // as the provider tells it, may be empty
	Tags       []string
}

// Network is a private network on a server.
type Network struct {
	ID     string
	VLAN   uint32 // 0 while it is being attached
	Status string
}

// Listing is a zone as its provider lists it.
type Listing struct {
	Servers  map[string]Server    // by ID
	Networks map[string][]Network // by the server's ID
}

// Provider is a company that rents servers. Errors are fault errors: 429,
// 5xx and passing states are Transient, everything else NeedsOperator.
type Provider interface {
	// Describe gives the server as it is now.
	Describe(ctx context.Context, zone, serverID string) (Server, error)
	// Networks lists the private networks attached to the server.
	Networks(ctx context.Context, zone, serverID string) ([]Network, error)
	// List lists all servers of a zone and their private networks: a few
	// requests, however many servers there are.
	List(ctx context.Context, zone string) (Listing, error)
	// RescuePassword gives the password of the current rescue boot. Callers
	// keep it in memory only.
	RescuePassword(ctx context.Context, zone, serverID string) (string, error)
	// SSHKeyIDs finds the provider's IDs of public keys (authorized_keys
	// form) that may log in to rescue; keys that are not registered are
	// left out.
	SSHKeyIDs(ctx context.Context, publicKeys []string) ([]string, error)
	// Reboot asks once for an abrupt reboot into a boot type.
	Reboot(ctx context.Context, zone, serverID string, boot BootType, sshKeyIDs []string) error
	// Start powers a stopped server on; Stop powers it off.
	Start(ctx context.Context, zone, serverID string, boot BootType, sshKeyIDs []string) error
	Stop(ctx context.Context, zone, serverID string) error
}

// StatusStopped is the Status of a server that is powered off: it is started
// rather than rebooted.
const StatusStopped = "stopped"
