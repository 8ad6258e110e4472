// Package api is what the worker and the agent say to each other, as JSON.
// The agent reads requests from standard input and answers on standard
// output; nothing travels in arguments but kinds, keys and boot IDs.
package api

import (
	"fmt"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// StdinMarker is the line behind which the agent's request starts on
// standard input. Whatever stands before it (the sudo password, where sudo
// asks for none) is thrown away unread.
const StdinMarker = "--ironlot-request--"

// Kind is a job's kind.
type Kind string

// The jobs of the agent.
const (
	DiskPrep Kind = "disk-prep"
	Stage    Kind = "stage"
	Write    Kind = "write"
)

// Version answers `agent version`.
type Version struct {
	Version string `json:"version"`
	Arch    string `json:"arch"`
	SHA256  string `json:"sha256"` // of the running executable, hex
}

// Inventory answers `agent inspect`: the machine as it is, nothing changed.
type Inventory struct {
	BootID   string   `json:"bootId"`
	Kernel   string   `json:"kernel"`
	Arch     string   `json:"arch"` // GOARCH
	Hostname string   `json:"hostname"`
	Root     Root     `json:"root"`
	RAM      uint64   `json:"ram"`     // bytes, total
	RAMFree  uint64   `json:"ramFree"` // bytes that a staged image may take
	Disks    []Disk   `json:"disks"`   // whole disks that could be erased, in device order
	Tools    []string `json:"tools"`   // helpers present: mdadm, lvm, dmsetup
}

// Root is what the root filesystem lies on.
type Root struct {
	FSType string   `json:"fsType"`
	Source string   `json:"source"`
	InRAM  bool     `json:"inRam"` // on none of the machine's disks: rescue
	Disks  []string `json:"disks"` // kernel names of disks below root, when not in RAM
}

// Disk is a whole disk with all that lies on it.
type Disk struct {
	Name       string      `json:"name"` // kernel name on this boot, such as sda
	Serial     string      `json:"serial,omitempty"`
	WWN        string      `json:"wwn,omitempty"`
	ByID       []string    `json:"byId,omitempty"` // names below /dev/disk/by-id
	Model      string      `json:"model,omitempty"`
	Size       uint64      `json:"size"`       // bytes
	SectorSize int         `json:"sectorSize"` // logical, bytes
	ReadOnly   bool        `json:"readOnly,omitempty"`
	Removable  bool        `json:"removable,omitempty"`
	Table      string      `json:"table,omitempty"`   // gpt, dos
	Blank      bool        `json:"blank,omitempty"`   // a GPT without partitions, both copies valid, protective MBR
	Residue    bool        `json:"residue,omitempty"` // data where partitions start, of which the blank table says nothing; only disk-prep looks
	Parts      []Partition `json:"parts,omitempty"`
	Signatures []Signature `json:"signatures,omitempty"` // on the whole disk
	Holders    []Holder    `json:"holders,omitempty"`    // everything that uses the disk or a part, outermost first
}

// Identity is the disk as facts record it.
func (d Disk) Identity() run.Disk {
	return run.Disk{Serial: d.Serial, WWN: d.WWN, Model: d.Model, Size: d.Size, Name: d.Name}
}

// Partition is one entry of the disk's partition table.
type Partition struct {
	Number     int         `json:"number"`
	Name       string      `json:"name,omitempty"`  // kernel name, such as sda1
	Label      string      `json:"label,omitempty"` // GPT partition name
	Offset     uint64      `json:"offset"`          // bytes
	Size       uint64      `json:"size"`            // bytes
	Signatures []Signature `json:"signatures,omitempty"`
}

// Signature is something on a disk that a system could recognise.
type Signature struct {
	Type   string `json:"type"`   // linux_raid_member, LVM2_member, ext4, xfs, vfat, swap, crypto_LUKS, gpt, dos, …
	Offset uint64 `json:"offset"` // bytes, from the start of the disk or partition
	Label  string `json:"label,omitempty"`
	Set    string `json:"set,omitempty"` // what it is a member of, the same on all members: array UUID, volume group ID
}

// HolderKind is a kind of holder.
type HolderKind string

// The kinds of holders.
const (
	HolderMount HolderKind = "mount"
	HolderSwap  HolderKind = "swap"
	HolderMD    HolderKind = "md"
	HolderLVM   HolderKind = "lvm" // an active logical volume
	HolderDM    HolderKind = "dm"  // any other device-mapper device
	HolderOther HolderKind = "other"
)

// Holder is something that keeps a disk or one of its partitions busy.
type Holder struct {
	Kind   HolderKind `json:"kind"`
	Name   string     `json:"name"`             // md127, vg0/root, /mnt, dm-3
	Device string     `json:"device"`           // kernel name of what it is on: sda2, md127
	Detail string     `json:"detail,omitempty"` // md level, volume group, mount options
}

// JobSpec asks for a job. Exactly one of DiskPrep, Stage and Write is set.
type JobSpec struct {
	Kind     Kind          `json:"kind"`
	Fence    *Fence        `json:"fence,omitempty"` // nil: not fenced, as by hand
	DiskPrep *DiskPrepSpec `json:"diskPrep,omitempty"`
	Stage    *StageSpec    `json:"stage,omitempty"`
	Write    *WriteSpec    `json:"write,omitempty"`
}

// Fence tells a machine who asks for a job: once it has taken a job of a run,
// or was claimed for one, it starts no job of another run on this boot, and
// none of an earlier pass. A worker that was frozen and comes back late is
// kept away by it.
type Fence struct {
	Run  string `json:"run"`
	Pass int    `json:"pass"`
}

// Claim asks for the machine on behalf of a run.
type Claim struct {
	Fence Fence  `json:"fence"`
	Evict string `json:"evict,omitempty"` // key of a foreign job that may be stopped
}

// Claimed answers `agent job claim`. Running is the key of a foreign job at
// work; as long as there is one the machine is not claimed.
type Claimed struct {
	Running string `json:"running,omitempty"`
}

// DiskPrepSpec names every disk that may be touched, by identity.
type DiskPrepSpec struct {
	System    run.Disk   `json:"system"`
	Secondary []run.Disk `json:"secondary,omitempty"` // handed over: erased to a blank GPT
}

// StageSpec names the image.
type StageSpec struct {
	Image run.Image `json:"image"`
}

// WriteSpec names the disk and the staged image that it gets.
type WriteSpec struct {
	System     run.Disk `json:"system"`
	DataSHA256 string   `json:"dataSha256"` // the staged image's, see run.Staged
	RawSize    int64    `json:"rawSize"`    // bytes
	// Verify is how much is read back; empty: all of it.
	Verify run.Verify `json:"verify,omitempty"`
	// State adds a STATE partition with the machine config; nil: none.
	State *StateSpec `json:"state,omitempty"`
}

// StateSpec is what the STATE partition is to hold. It is secret: it prints
// without its content, and the job keeps no copy of it once it has begun.
type StateSpec struct {
	Config []byte `json:"config"` // the machine config, as Talos reads it
}

// String says how much there is, and nothing of it.
func (s StateSpec) String() string { return fmt.Sprintf("a machine config of %d bytes", len(s.Config)) }

// GoString is String, so that %#v shows no secret either.
func (s StateSpec) GoString() string { return s.String() }

// WithoutSecrets is the spec as a job may keep it.
func (s JobSpec) WithoutSecrets() JobSpec {
	if s.Write != nil && s.Write.State != nil {
		write := *s.Write
		write.State = nil
		s.Write = &write
	}
	return s
}

// JobState says how a job is doing.
type JobState string

// The states of a job. Lost: its process is gone and left no result.
const (
	JobRunning   JobState = "running"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobCanceled  JobState = "canceled"
	JobLost      JobState = "lost"
)

// JobStatus answers `agent job start`, `status`, `cancel`, and each line of
// `agent job follow`.
type JobStatus struct {
	Key      string     `json:"key"`
	Kind     Kind       `json:"kind"`
	BootID   string     `json:"bootId"`
	State    JobState   `json:"state"`
	Attached bool       `json:"attached,omitempty"` // start found it already there
	Progress Progress   `json:"progress"`
	Log      []LogEntry `json:"log,omitempty"` // the last entries
	Result   *JobResult `json:"result,omitempty"`
	Error    *Error     `json:"error,omitempty"`
	Started  time.Time  `json:"started"`
	Ended    time.Time  `json:"ended,omitzero"`
}

// Progress is where a job is.
type Progress struct {
	Step  string  `json:"step"`
	Done  int64   `json:"done"`  // bytes
	Total int64   `json:"total"` // bytes, 0 unknown
	Rate  float64 `json:"rate"`  // bytes per second, lately
}

// LogEntry is one thing that the agent saw, decided or ran.
type LogEntry struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"` // saw, plan, ran, did
	Text   string    `json:"text"`
	Args   []string  `json:"args,omitempty"` // of a tool
	Exit   *int      `json:"exit,omitempty"`
	Output string    `json:"output,omitempty"` // the tool's last lines
}

// JobResult is what a job proved. One of the pointers is set.
type JobResult struct {
	DiskPrep *run.Prepared `json:"diskPrep,omitempty"`
	Stage    *run.Staged   `json:"stage,omitempty"`
	Write    *run.Written  `json:"write,omitempty"`
}

// Error is a classified error as JSON.
type Error struct {
	Class   fault.Class `json:"class"`
	Message string      `json:"message"`
	Remedy  string      `json:"remedy,omitempty"`
	Tail    string      `json:"tail,omitempty"`
}

// ErrorFrom makes the JSON form of an error.
func ErrorFrom(err error) *Error {
	if e, ok := fault.As(err); ok {
		return &Error{Class: e.Class, Message: e.Message, Remedy: e.Remedy, Tail: e.Tail}
	}
	return &Error{Class: fault.Transient, Message: err.Error()}
}

// Err gives the error back on the worker's side.
func (e *Error) Err() error {
	return &fault.Error{Class: e.Class, Message: e.Message, Remedy: e.Remedy, Tail: e.Tail}
}

// Answer is the one line of JSON that every agent command but follow prints:
// exactly one of Value and Error is set. The exit status is 0 with Value and
// 1 with Error.
type Answer[T any] struct {
	Value *T     `json:"value,omitempty"`
	Error *Error `json:"error,omitempty"`
}
