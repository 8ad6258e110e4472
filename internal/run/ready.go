package run

import (
	"slices"
	"time"
)

// DefaultHold is how long a node must stay Ready when the lot does not say.
const DefaultHold = 3 * time.Second

// ReadyRule says when a node counts as done.
type ReadyRule struct {
	Hold   time.Duration `json:"hold,omitempty"`   // how long it must stay so; zero: DefaultHold
	Accept []Shortfall   `json:"accept,omitempty"` // what may be missing from a node that is done
	// Labels and ProviderID are what Kubernetes must show of the node, where
	// the run has a kubeconfig. Both may hold ${ironlot.NAME}; see Node.Fill.
	Labels     map[string]string `json:"labels,omitempty"`     // an empty value stands for any
	ProviderID string            `json:"providerId,omitempty"` // or AnyProviderID
}

// AnyProviderID as a provider ID stands for any that is not empty.
const AnyProviderID = "any"

// HoldOr gives the hold time, or its default.
func (r ReadyRule) HoldOr() time.Duration { return or(r.Hold, DefaultHold) }

// Accepts reports whether a node counts as done in spite of a shortfall.
func (r ReadyRule) Accepts(s Shortfall) bool { return slices.Contains(r.Accept, s) }

// Shortfall is what a node may wait for from others: what is installed into
// the cluster, not onto the machine.
type Shortfall string

// The shortfalls.
const (
	// NoCNI: the node is NotReady and nothing has put a CNI config onto it.
	NoCNI Shortfall = "no-cni"
	// Uninitialized: no cloud controller manager has taken the taint
	// node.cloudprovider.kubernetes.io/uninitialized away.
	Uninitialized Shortfall = "uninitialized"
)

// Shortfalls lists them all.
func Shortfalls() []Shortfall { return []Shortfall{NoCNI, Uninitialized} }
