// Package run holds the words that the starter, the workflows and the
// activities share: what a run is told, what it has observed, and where it
// stands. Nothing in this package is secret: every value may be shown.
package run

import (
	"strconv"
	"strings"
	"time"
)

// Phase is one of the steps that take a rented server to a Ready node.
type Phase string

// The phases, in the order in which a run goes through them.
const (
	Preflight    Phase = "preflight"
	RebootRescue Phase = "reboot-rescue"
	WaitSSH      Phase = "wait-ssh"
	DiskPrep     Phase = "disk-prep"
	Stage        Phase = "stage"
	Write        Phase = "write"
	SysrqReset   Phase = "sysrq-reset"
	BootNormal   Phase = "boot-normal"
	ApplyConfig  Phase = "apply-config"
	WaitReady    Phase = "wait-ready"
)

// State says how a run is doing.
type State string

// The states of a run. Ready, Aborted and Refused are final.
const (
	Queued  State = "queued"  // the lot has not started it yet
	Running State = "running" // a phase is at work
	Stuck   State = "stuck"   // waits for a person: retry or abort
	Ready   State = "ready"   // the node is Ready in its cluster
	Aborted State = "aborted" // a person ended the run
	Refused State = "refused" // never started: another run holds the server, or the cluster was not bootstrapped
)

// Final reports whether a run in this state has ended.
func (s State) Final() bool { return s == Ready || s == Aborted || s == Refused }

// Node is what a run is told about the server that it provisions.
type Node struct {
	Lot         string     `json:"lot,omitempty"`
	Name        string     `json:"name"`               // node name, the hostname in the cluster
	Provider    string     `json:"provider,omitempty"` // "scaleway"
	Zone        string     `json:"zone,omitempty"`
	ServerID    string     `json:"serverId"`
	ServerName  string     `json:"serverName"` // as the provider must show it
	Image       Image      `json:"image,omitzero"`
	Disks       DiskPolicy `json:"disks,omitzero"`
	Rescue      Rescue     `json:"rescue,omitzero"`
	Delivery    Delivery   `json:"delivery,omitempty"`  // empty: maintenance
	VLAN        string     `json:"vlan,omitempty"`      // auto, or empty: the config says it
	TalosPort   int        `json:"talosPort,omitempty"` // 50000 on every real node
	Reprovision bool       `json:"reprovision,omitempty"`
	Timeouts    Timeouts   `json:"timeouts,omitzero"`
	Boot        BootPolicy `json:"boot,omitzero"`
	Lab         bool       `json:"lab,omitempty"` // the machine is simulated
	// ControlPlane is what the node's config makes of it.
	ControlPlane bool `json:"controlPlane,omitempty"`
	// Bootstrap makes the node the first of its cluster: it starts etcd.
	Bootstrap bool      `json:"bootstrap,omitempty"`
	Ready     ReadyRule `json:"ready,omitzero"`
}

// ID is the workflow ID of the node's run: one server, one run.
func (n Node) ID() string { return ID(n.Provider, n.ServerID) }

// ID is the workflow ID of the run of a provider's server.
func ID(provider, serverID string) string { return "provision/" + provider + "/" + serverID }

// LotID is the workflow ID of a lot's parent workflow.
func LotID(lot string) string { return "lot/" + lot }

// Image is the Talos disk image that is written.
type Image struct {
	URL       string `json:"url"`                 // http or https; raw, zst, xz or gz
	SHA256    string `json:"sha256,omitempty"`    // of the download as served, hex
	RawSHA256 string `json:"rawSha256,omitempty"` // of the raw image, hex
	Verify    Verify `json:"verify,omitempty"`    // empty: VerifyFull
}

// Verify is how much of the disk is read back after the image is written.
type Verify string

const (
	// VerifyFull reads all of the image's region back: data and holes.
	VerifyFull Verify = "full"
	// VerifyData reads the image's data back, and of its holes, which the disk
	// was told to zero, one MiB of every 64.
	VerifyData Verify = "data"
)

// DiskPolicy says which disks a run may erase.
type DiskPolicy struct {
	System    DiskChoice `json:"system"`
	Secondary Secondary  `json:"secondary"`
}

// DiskChoice is the rule that picks the system disk. Exactly one of Serial,
// WWN, ByID and Smallest is set; the sizes (bytes) may stand alone or narrow
// Smallest. A rule that fits no disk, or several, is refused.
type DiskChoice struct {
	Serial   string `json:"serial,omitempty"`
	WWN      string `json:"wwn,omitempty"`
	ByID     string `json:"byId,omitempty"` // a name or path below /dev/disk/by-id
	Smallest bool   `json:"smallest,omitempty"`
	MinSize  uint64 `json:"minSize,omitempty"`
	MaxSize  uint64 `json:"maxSize,omitempty"`
}

// Secondary says what happens to the disks that are not the system disk.
type Secondary string

// The policies for secondary disks.
const (
	Blank Secondary = "blank" // erased: a blank GPT with a protective MBR
	Keep  Secondary = "keep"  // not touched
)

// Delivery says how the machine config reaches the node.
type Delivery string

// The deliveries.
const (
	// ByMaintenance hands the config to the node's API in maintenance, which
	// takes one from anybody for as long as it is open.
	ByMaintenance Delivery = "maintenance"
	// ByState writes the config to the disk, into a STATE partition: the node
	// never opens maintenance.
	ByState Delivery = "state"
)

// Rescue says how the rescue system is reached.
type Rescue struct {
	Port  int  `json:"port"`            // SSH port, 22 on every real server
	Fresh bool `json:"fresh,omitempty"` // reboot even out of a good rescue boot
}

// Timeouts bound what a phase waits for. Zero means the default.
type Timeouts struct {
	RescueBoot time.Duration `json:"rescueBoot,omitempty"` // reboot to SSH in rescue
	Stage      time.Duration `json:"stage,omitempty"`
	Write      time.Duration `json:"write,omitempty"`
	NormalBoot time.Duration `json:"normalBoot,omitempty"` // reboot to the Talos API
	Apply      time.Duration `json:"apply,omitempty"`
	Ready      time.Duration `json:"ready,omitempty"` // config applied to Ready
	DiskPrep   time.Duration `json:"diskPrep,omitempty"`
	// Unreachable is how long a machine may be out of reach before its rescue
	// boot is given up.
	Unreachable time.Duration `json:"unreachable,omitempty"`
}

// Sealed is what a run carries encrypted to the workers (age, ASCII armor).
// Nodes of a lot have equal values where they share what is in them.
type Sealed struct {
	Config      string `json:"config"`        // base config and the lot's patches
	Own         string `json:"own,omitempty"` // the node's own patches and values
	Talosconfig string `json:"talosconfig"`   // the cluster's client config
	// Kubeconfig asks Kubernetes for a second opinion; empty: it is not asked.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Digest is the beginning of the SHA-256 of the node's whole machine config
	// as the starter has rendered it, hex: what is sealed anew looks changed.
	Digest string `json:"digest,omitempty"`
}

// SameConfig reports whether both hold the same machine config.
func (s Sealed) SameConfig(other Sealed) bool {
	return s.Config == other.Config && s.Own == other.Own || s.Digest != "" && s.Digest == other.Digest
}

// VLANAuto as a node's VLAN stands for the one private network that the
// server is attached to.
const VLANAuto = "auto"

// VLANName is the value that the number takes the place of in a config:
// ${ironlot.vlan}.
const VLANName = "vlan"

// Fill puts the node's values in the place of ${ironlot.NAME}. Unknown names
// stay; see Values.
func (n Node) Fill(text string, vlan uint32) string {
	for name, value := range n.Values(vlan) {
		text = strings.ReplaceAll(text, "${ironlot."+name+"}", value)
	}
	return text
}

// Values are what a node's config may ask for by ${ironlot.NAME}, besides the
// lot file's own values. Without a known VLAN it stands as 1, which is only
// good to check a config.
func (n Node) Values(vlan uint32) map[string]string {
	values := map[string]string{
		"name": n.Name, "lot": n.Lot, "zone": n.Zone, "server.id": n.ServerID, "server.name": n.ServerName,
	}
	if n.VLAN == VLANAuto {
		values[VLANName] = strconv.Itoa(int(max(vlan, 1)))
	}
	return values
}
