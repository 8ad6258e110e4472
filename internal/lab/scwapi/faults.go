package scwapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// FaultKind is a way in which the API fails.
type FaultKind string

// The kinds of faults.
const (
	RateLimit     FaultKind = "rate-limit"     // 429, with Retry-After when that is set
	ServerError   FaultKind = "server-error"   // 500, or the 5xx in Status
	Reset         FaultKind = "reset"          // the connection is reset, nothing is done
	LostAnswer    FaultKind = "lost-answer"    // the request takes effect, its answer never comes
	Slow          FaultKind = "slow"           // the answer takes Delay longer
	RebootIgnored FaultKind = "reboot-ignored" // accepted, shown, and the machine goes on as it was
	StaleStatus   FaultKind = "stale-status"   // the server is shown as it was before the last action, for Delay if that is set
	StuckStopping FaultKind = "stuck-stopping" // the machine acts, the status never leaves stopping or starting
)

// faultKinds are all of them.
func faultKinds() []FaultKind {
	return []FaultKind{RateLimit, ServerError, Reset, LostAnswer, Slow, RebootIgnored, StaleStatus, StuckStopping}
}

// Fault is a fault to play on the requests that it fits.
type Fault struct {
	Kind       FaultKind
	Operation  string        // the SDK's name, such as RebootServer; empty: any that the kind can strike
	Server     string        // a server's ID; empty: any
	Times      int           // how often; 0: until cleared
	Rate       float64       // chance for each request; 0: always
	RetryAfter time.Duration // RateLimit: whole seconds, 0: no header
	Status     int           // ServerError
	Delay      time.Duration // Slow, StaleStatus
}

// faultJSON is a fault on the lab's routes.
type faultJSON struct {
	Kind       FaultKind `json:"kind"`
	Operation  string    `json:"operation,omitempty"`
	Server     string    `json:"server,omitempty"`
	Times      int       `json:"times,omitempty"`
	Rate       float64   `json:"rate,omitempty"`
	RetryAfter string    `json:"retry_after,omitempty"` // Go's form: 5s
	Status     int       `json:"status,omitempty"`
	Delay      string    `json:"delay,omitempty"`
}

// MarshalJSON writes durations as 5s.
func (f Fault) MarshalJSON() ([]byte, error) {
	j := faultJSON{Kind: f.Kind, Operation: f.Operation, Server: f.Server, Times: f.Times, Rate: f.Rate, Status: f.Status}
	if f.RetryAfter != 0 {
		j.RetryAfter = f.RetryAfter.String()
	}
	if f.Delay != 0 {
		j.Delay = f.Delay.String()
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads durations as 5s.
func (f *Fault) UnmarshalJSON(data []byte) (err error) {
	var j faultJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*f = Fault{Kind: j.Kind, Operation: j.Operation, Server: j.Server, Times: j.Times, Rate: j.Rate, Status: j.Status}
	if j.RetryAfter != "" {
		if f.RetryAfter, err = time.ParseDuration(j.RetryAfter); err != nil {
			return err
		}
	}
	if j.Delay != "" {
		f.Delay, err = time.ParseDuration(j.Delay)
	}
	return err
}

// Check says what is wrong with a fault.
func (f Fault) Check() error {
	switch {
	case !slices.Contains(faultKinds(), f.Kind):
		return fmt.Errorf("there is no fault kind %q, use one of %v", f.Kind, faultKinds())
	case f.Rate < 0 || f.Rate > 1:
		return fmt.Errorf("the rate %v of fault %s is not between 0 and 1", f.Rate, f.Kind)
	case f.Times < 0 || f.RetryAfter < 0 || f.Delay < 0:
		return fmt.Errorf("fault %s has a negative number", f.Kind)
	case f.Kind == Slow && f.Delay == 0:
		return fmt.Errorf("fault %s needs a delay", f.Kind)
	case f.Kind == ServerError && f.Status != 0 && (f.Status < 500 || f.Status > 599):
		return fmt.Errorf("the status %d of fault %s is not a 5xx", f.Status, f.Kind)
	}
	return nil
}

// fits reports whether the fault can strike a request. Faults without an
// operation leave the lab's own routes alone.
func (f *Fault) fits(kind FaultKind, operation, server string) bool {
	return f.Kind == kind &&
		(f.Operation == operation || f.Operation == "" && !isLab(operation)) &&
		(f.Server == "" || f.Server == server)
}

// isLab tells the lab's own operations.
func isLab(operation string) bool {
	return slices.Contains([]string{"ListFaults", "AddFault", "ClearFaults", "ListCounters"}, operation)
}

// faults are those in force. They are safe for concurrent use.
type faults struct {
	mu   sync.Mutex
	rand *rand.Rand
	list []*Fault
}

// newFaults makes the set; faults that Check refuses never strike.
func newFaults(seed uint64, list []Fault) *faults {
	s := &faults{rand: rand.New(rand.NewPCG(seed, 1))}
	for _, f := range list {
		s.add(f)
	}
	return s
}

func (s *faults) add(f Fault) {
	if f.Kind == ServerError && f.Status == 0 {
		f.Status = http.StatusInternalServerError
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, &f)
}

func (s *faults) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

func (s *faults) snapshot() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Fault, 0, len(s.list))
	for _, f := range s.list {
		list = append(list, *f)
	}
	return list
}

// hit draws the first fault that strikes a request and uses it up by one.
func (s *faults) hit(kind FaultKind, operation, server string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.list {
		if !f.fits(kind, operation, server) || f.Rate > 0 && s.rand.Float64() >= f.Rate {
			continue
		}
		struck := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.list = slices.Delete(s.list, i, i+1)
			}
		}
		return &struck
	}
	return nil
}
