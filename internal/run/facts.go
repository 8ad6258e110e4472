package run

import (
	"reflect"
	"time"
)

// Facts is what a run has observed so far. Each phase extends it; the Web
// UI, `starter status` and the post-mortem show it.
type Facts struct {
	Address   string      `json:"address,omitempty"` // the server's public address
	Preflight *Checked    `json:"preflight,omitempty"`
	Rescue    *RescueBoot `json:"rescue,omitempty"`
	SeenBoots []string    `json:"seenBoots,omitempty"` // boot IDs of earlier boots
	System    *Disk       `json:"system,omitempty"`
	Secondary []Disk      `json:"secondary,omitempty"`
	Touched   bool        `json:"touched,omitempty"` // disk-prep has begun once in this run
	Prepared  *Prepared   `json:"prepared,omitempty"`
	Staged    *Staged     `json:"staged,omitempty"`
	Written   *Written    `json:"written,omitempty"`
	Reset     *Reset      `json:"reset,omitempty"`
	Booted    *Booted     `json:"booted,omitempty"`
	Applied   *Applied    `json:"applied,omitempty"`
	Ready     *NodeReady  `json:"ready,omitempty"`
}

// Checked is what preflight found.
type Checked struct {
	ServerName  string   `json:"serverName"`
	Status      string   `json:"status"`
	BootType    string   `json:"bootType"`
	ImageSize   int64    `json:"imageSize,omitempty"` // bytes of the download, -1 unknown
	ImageFormat string   `json:"imageFormat,omitempty"`
	VLANs       []uint32 `json:"vlans,omitempty"`
	VLAN        uint32   `json:"vlan,omitempty"` // of the one private network, for `vlan: auto`
	Warnings    []string `json:"warnings,omitempty"`
	// Volumes are the config's user volumes, which want a disk each.
	Volumes []UserVolume `json:"volumes,omitempty"`
	// Config is set by a dry run alone.
	Config *ConfigPlan `json:"config,omitempty"`
}

// UserVolume is a volume that Talos makes on a disk of its choice.
type UserVolume struct {
	Name    string `json:"name"`
	Match   string `json:"match,omitempty"`   // CEL expression that selects the disk
	MinSize uint64 `json:"minSize,omitempty"` // bytes
}

// RescueBoot is one boot of the provider's rescue system.
type RescueBoot struct {
	AskedAt time.Time `json:"askedAt,omitzero"` // when the reboot was asked for
	Reused  bool      `json:"reused,omitempty"` // the server was in rescue already
	BootID  string    `json:"bootId,omitempty"`
	HostKey string    `json:"hostKey,omitempty"` // SHA256:… fingerprint, pinned for this boot
	User    string    `json:"user,omitempty"`
	Kernel  string    `json:"kernel,omitempty"`
	Arch    string    `json:"arch,omitempty"`
	RootFS  string    `json:"rootFs,omitempty"` // what root lies on: in RAM
	RAM     uint64    `json:"ram,omitempty"`    // bytes
}

// Disk is a disk by its identity, never by its kernel name alone.
type Disk struct {
	Serial string `json:"serial,omitempty"`
	WWN    string `json:"wwn,omitempty"`
	Model  string `json:"model,omitempty"`
	Size   uint64 `json:"size"` // bytes
	Name   string `json:"name"` // kernel name on the boot that saw it
}

// Prepared is what disk-prep left behind.
type Prepared struct {
	Released []string `json:"released,omitempty"` // holders taken down
	Cleared  []string `json:"cleared,omitempty"`  // signatures removed
	Blanked  []string `json:"blanked,omitempty"`  // serials of disks with a blank GPT
}

// Staged is the image in the rescue system's RAM.
type Staged struct {
	Format         string `json:"format"` // raw, zstd, xz, gzip
	DownloadSHA256 string `json:"downloadSha256"`
	// RawSHA256 is computed where the lot file names it, or no digest at all:
	// it costs a look at every zero of the image. Empty otherwise.
	RawSHA256 string `json:"rawSha256,omitempty"`
	// DataSHA256 tells raw images apart, see image.DataDigest.
	DataSHA256 string  `json:"dataSha256"`
	RawSize    int64   `json:"rawSize"`  // bytes
	DataSize   int64   `json:"dataSize"` // bytes that are not zero blocks
	Seconds    float64 `json:"seconds"`
}

// Digest says what the image is known by: its own SHA-256 if that was
// computed, or else that of the download.
func (s Staged) Digest() string {
	if s.RawSHA256 != "" {
		return "raw SHA-256 " + s.RawSHA256
	}
	return "SHA-256 of the download " + s.DownloadSHA256
}

// Written is the system disk after write, as read back.
type Written struct {
	Serial        string          `json:"serial"`
	BytesWritten  int64           `json:"bytesWritten"`
	BytesZeroed   int64           `json:"bytesZeroed"`
	BytesVerified int64           `json:"bytesVerified"`
	ZeroMethod    string          `json:"zeroMethod"` // discard, write-zeroes, written
	Seconds       float64         `json:"seconds"`
	MBPerSecond   float64         `json:"mbPerSecond"` // written, 10^6 bytes
	State         *StatePartition `json:"state,omitempty"`
}

// StatePartition is the STATE partition that write added behind the image's own ones.
type StatePartition struct {
	Partition   int   `json:"partition"` // its number
	Offset      int64 `json:"offset"`    // bytes
	Size        int64 `json:"size"`      // bytes
	ConfigBytes int   `json:"configBytes"`
}

// Reset is the end of the rescue boot.
type Reset struct {
	BootID string    `json:"bootId"`
	Proof  string    `json:"proof"` // how the end of the boot was seen
	At     time.Time `json:"at"`
}

// Booted is the first answer of Talos from the written disk.
type Booted struct {
	AskedAt time.Time `json:"askedAt,omitzero"`
	Version string    `json:"version,omitempty"` // Talos version, when it tells
	State   string    `json:"state"`             // maintenance, configured
	At      time.Time `json:"at"`                // when it answered
}

// Applied is the config's arrival on the node.
type Applied struct {
	ConfigSHA256  string  `json:"configSha256"`
	Already       bool    `json:"already,omitempty"`       // the node had it before
	Unproved      bool    `json:"unproved,omitempty"`      // its API is not open yet: wait-ready proves the config
	WindowSeconds float64 `json:"windowSeconds,omitempty"` // how long maintenance was open
}

// NodeReady is the Ready node.
type NodeReady struct {
	At           time.Time `json:"at"`
	TalosVersion string    `json:"talosVersion,omitempty"`
	NodeName     string    `json:"nodeName,omitempty"`
	// Missing is what the node still waits for and the lot accepts.
	Missing []Shortfall `json:"missing,omitempty"`
	// Notes say what was not proved, or is worth a look; one sentence each.
	Notes     []string      `json:"notes,omitempty"`
	Bootstrap *Bootstrapped `json:"bootstrap,omitempty"`
}

// Bootstrapped is the first etcd member of the cluster, on this node.
type Bootstrapped struct {
	MemberID string `json:"memberId,omitempty"`
	Already  bool   `json:"already,omitempty"` // etcd ran before the run asked
}

// Since gives what of the facts differs from earlier ones, so that a run's
// history holds each fact once. A fact that was dropped meanwhile is not told.
func (f Facts) Since(earlier Facts) Facts {
	to, from := reflect.ValueOf(&f).Elem(), reflect.ValueOf(earlier)
	for i := range to.NumField() {
		clearSame(to.Field(i), from.Field(i))
	}
	return f
}

// With gives the facts with newer ones over them.
func (f Facts) With(newer Facts) Facts {
	to, from := reflect.ValueOf(&newer).Elem(), reflect.ValueOf(f)
	for i := range to.NumField() {
		fillZero(to.Field(i), from.Field(i))
	}
	return newer
}
