// Package scwapi simulates the part of Scaleway's HTTP API that renting
// Elastic Metal servers takes: the routes, JSON, errors and state sequences
// of the recordings in testdata, over machines of the lab. Where no recording
// shows what the real API does, the code says "assumed".
//
// Every answer carries the header X-Ironlot-Lab, and every server the tag
// ironlot-lab: nothing that ran here can pass for real.
package scwapi

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// What marks the lab's answers and servers.
const (
	LabHeader = "X-Ironlot-Lab"
	LabTag    = "ironlot-lab"
)

// The lab's account. The default project has the organization's ID, as in
// the recordings.
const (
	OrganizationID = "1ab00000-0000-4000-8000-000000000001"
	ProjectID      = OrganizationID
	vpcID          = "1ab00000-0000-4000-8000-000000000003"
)

// DefaultKey is the API key that the lab takes when Options names none. It
// opens nothing else.
func DefaultKey() Key {
	return Key{AccessKey: "SCWIRONLOTLAB0000000", SecretKey: "1ab00000-0000-4000-8000-0000000000aa"}
}

// Key is an API key of the lab's account.
type Key struct {
	AccessKey string
	SecretKey string
	ReadOnly  bool // may look, not touch: 403 on everything but GET
}

// Options of an API. The zero value is the real one's pace without faults.
type Options struct {
	Keys       []Key            // nil: DefaultKey
	Latency    *Latency         // nil: RealLatency
	Now        func() time.Time // nil: time.Now
	Seed       uint64           // of IDs, VLANs and fault rates
	Faults     []Fault          // from the start
	RescueUser string           // empty: "rescue"
	// Hold is called at each request for a server, before it has any effect
	// and after it, before the answer: it may block. May be nil.
	Hold func(server, point string)
}

// Latency is how long the API takes for what it does in the background.
// 0 means at once.
type Latency struct {
	Settle       time.Duration // reboot, start and stop, until the status is final again
	Deliver      time.Duration // an order, until the server is ready
	InstallStart time.Duration // to_install, until installing
	Install      time.Duration // installing, until completed
	Attach       time.Duration // a private network
	Detach       time.Duration
	Option       time.Duration // enabling an option
	Delete       time.Duration
}

// RealLatency is the real API's pace. The recordings poll every 5 to 15
// seconds; the updated_at in them tells that a reboot settles after 2 s.
func RealLatency() Latency {
	return Latency{
		Settle:       2 * time.Second,
		Deliver:      100 * time.Millisecond,
		InstallStart: 33 * time.Second,
		Install:      10 * time.Minute,
		Attach:       5 * time.Second,
		Detach:       4 * time.Second,
		Option:       500 * time.Millisecond,
		Delete:       4 * time.Second,
	}
}

// Scaled gives the latencies times a factor: 0.01 is a hundred times faster.
func (l Latency) Scaled(factor float64) Latency {
	scale := func(d time.Duration) time.Duration { return time.Duration(float64(d) * factor) }
	return Latency{
		Settle: scale(l.Settle), Deliver: scale(l.Deliver),
		InstallStart: scale(l.InstallStart), Install: scale(l.Install),
		Attach: scale(l.Attach), Detach: scale(l.Detach),
		Option: scale(l.Option), Delete: scale(l.Delete),
	}
}

// API is the simulated API. It is safe for concurrent use.
type API struct {
	keys       []Key
	latency    Latency
	now        func() time.Time
	rescueUser string
	onHold     func(server, point string) // may be nil
	faults     *faults
	mux        *http.ServeMux
	operations []string       // that faults can name
	power      sync.WaitGroup // machine commands in flight

	mu       sync.Mutex // guards all below, servers' fields included
	source   *rand.ChaCha8
	servers  []*server
	sshKeys  []*sshKey
	networks []*privateNetwork
}

// New makes an API without servers.
func New(opt Options) *API {
	a := &API{
		keys:       opt.Keys,
		latency:    RealLatency(),
		now:        opt.Now,
		rescueUser: opt.RescueUser,
		onHold:     opt.Hold,
		faults:     newFaults(opt.Seed, opt.Faults),
		source:     rand.NewChaCha8(seed(opt.Seed)),
	}
	if a.keys == nil {
		a.keys = []Key{DefaultKey()}
	}
	if opt.Latency != nil {
		a.latency = *opt.Latency
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.rescueUser == "" {
		a.rescueUser = "rescue"
	}
	a.mux = a.routes()
	return a
}

// Handler serves the API.
func (a *API) Handler() http.Handler { return a.mux }

// Wait returns when every command that machines were given so far has ended.
func (a *API) Wait() { a.power.Wait() }

// newID makes a UUID. The caller holds the lock.
func (a *API) newID() string {
	id, err := uuid.NewRandomFromReader(a.source)
	if err != nil {
		// ChaCha8 never fails to read.
		return uuid.NewString()
	}
	return id.String()
}

// number draws from [low, high). The caller holds the lock.
func (a *API) number(low, high int) int { return low + rand.New(a.source).IntN(high-low) }

// stamp is the time now as the API shows times.
func (a *API) stamp() stamp { return stamp(a.now()) }

// seed spreads a number over a ChaCha8 seed.
func seed(n uint64) (s [32]byte) {
	copy(s[:], fmt.Sprintf("ironlot lab %016x", n))
	return s
}
