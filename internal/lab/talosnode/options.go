package talosnode

import (
	"net"
	"sync"
	"time"
)

// Kubelet is what a node's kubelet tells Kubernetes, and a cloud controller
// manager after it.
type Kubelet struct {
	Name       string
	Address    string
	SystemUUID string
	ProviderID string // of the kubelet's own argument
	Labels     map[string]string
	Ready      bool
	Tainted    bool // no cloud controller manager has initialized the node
}

// Build is what a lab node's Version gives as its commit.
const Build = "lab-simulated"

// Options makes a node. The points of its Hold are "maintenance", which is
// served, "config taken", "keep config", before it is kept, and "ready", before
// Kubernetes says so.
type Options struct {
	Addr    string // host:port of the Talos API; port 0 picks one
	Host    string // the address in the node's certificates; empty: that of Addr
	Store   Store  // the machine's STATE partition; nil: lost at Stop
	Version string // Talos version; empty: v1.13.8
	UUID    string // of the hardware, as SystemInformation tells
	Serial  string // of the hardware
	Delays  Delays // zero: every step at once
	Faults  Faults
	Trustd  *Trustd                 // the control planes that the node can reach; nil: none
	VLANs   func() []uint32         // the private networks of the server; nil: not compared
	Wire    func(net.Conn) net.Conn // takes each connection; nil: as it is
	Hold    func(point string)      // called at the node's points, see above; may block; nil: not
	Kubelet func(Kubelet)           // tells the cluster's Kubernetes of the node; nil: nobody
	Refuse  bool                    // while no API is served connections are refused, not reset
	Log     func(msg string)        // the console; nil: nothing. Never a secret.
}

// Store is where a machine keeps its config: the STATE partition.
type Store interface {
	// Load gives the config, nil when there is none.
	Load() ([]byte, error)
	// Save keeps the config.
	Save(config []byte) error
}

// MemoryStore is a Store in memory; its zero value is empty.
type MemoryStore struct {
	mu     sync.Mutex
	config []byte
}

// Load gives what was saved last.
func (s *MemoryStore) Load() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config, nil
}

// Save replaces the config.
func (s *MemoryStore) Save(config []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = config
	return nil
}

// Delays are how long the node's steps take.
type Delays struct {
	Boot     time.Duration // start of the node to the API
	Answer   time.Duration // answer to an accepted config
	Linger   time.Duration // the maintenance API after the answer
	State    time.Duration // making STATE and issuing certificates: resets
	Time     time.Duration // until the time is synced
	Services time.Duration // until the services are healthy
	Register time.Duration // until Kubernetes knows the node
	Ready    time.Duration // until Kubernetes says Ready
}

// RealDelays is how long real Talos took in an emulator, where it was seen,
// and a usual machine elsewhere.
func RealDelays() Delays {
	return Delays{
		Boot: 30 * time.Second, Answer: 80 * time.Millisecond, Linger: 3 * time.Second, State: 7 * time.Second,
		Time: 5 * time.Second, Services: 30 * time.Second, Register: 10 * time.Second, Ready: 20 * time.Second,
	}
}

// Sum is what a node takes from its start to Ready when it gets its config at
// once.
func (d Delays) Sum() time.Duration {
	return d.Boot + d.Answer + d.Linger + d.State + d.Time + d.Services + d.Register + d.Ready
}

// Scale multiplies every delay.
func (d Delays) Scale(factor float64) Delays {
	scale := func(d time.Duration) time.Duration { return time.Duration(float64(d) * factor) }
	return Delays{
		Boot: scale(d.Boot), Answer: scale(d.Answer), Linger: scale(d.Linger), State: scale(d.State),
		Time: scale(d.Time), Services: scale(d.Services), Register: scale(d.Register), Ready: scale(d.Ready),
	}
}

// Faults are what can go wrong with a node.
type Faults struct {
	NeverJoins    bool // no way to the control plane, as with a wrong VLAN
	KubeletCrash  bool // kubelet never runs, as with two EPHEMERALs
	AnswerLost    bool // a config is taken, the connection is cut before the answer
	StateReadOnly bool // STATE cannot be formatted: the config is not kept, the API stays closed
	Foreign       bool // somebody else's config arrives in maintenance first
	NoCNI         bool // nobody installs a CNI: the node stays NotReady
	// Uninitialized: no cloud controller manager runs. It shows where the
	// config has cloud-provider: external.
	Uninitialized bool
	// BootstrapLost: a bootstrap is done, its answer is lost.
	BootstrapLost bool
	// BootstrapForgotten: the first bootstrap is accepted and forgotten, as by
	// a machined that restarts: it has the request in memory alone.
	BootstrapForgotten bool
	Inject             []byte // a config from elsewhere (kernel command line, stale STATE) that wins
}
