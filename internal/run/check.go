package run

// WorkflowCheck checks a lot and touches nothing: `provision --dry-run`.
const WorkflowCheck = "CheckLot"

// ActivityCheck is preflight with a look at what a run would do, for several
// nodes of a lot: it takes a LotInput and gives a NodeCheck for each node.
const ActivityCheck = "check"

// A lot is checked in so many parts at most, of so many nodes at least: each
// lists the servers of the lot's zone once.
const (
	maxParts = 4
	minPart  = 25
)

// Part is a part of a lot: nodes From to To, To not included.
type Part struct{ From, To int }

// CheckParts are the parts in which a lot is checked. The activity of each
// has the part's index as its ID.
func CheckParts(nodes int) []Part {
	size := max(minPart, (nodes+maxParts-1)/maxParts)
	var parts []Part
	for from := 0; from < nodes; from += size {
		parts = append(parts, Part{from, min(from+size, nodes)})
	}
	return parts
}

// CheckID is the workflow ID of the check of a lot.
func CheckID(lot string) string { return "check/" + lot }

// LotCheck is the result of CheckLot, in the lot's order.
type LotCheck struct {
	Lot   string      `json:"lot"`
	Nodes []NodeCheck `json:"nodes"`
}

// NodeCheck is what a run of a node would find and do.
type NodeCheck struct {
	Name    string   `json:"name"`
	Facts   Facts    `json:"facts"`
	Problem *Problem `json:"problem,omitempty"` // why preflight refuses; nil: it does not
}

// ConfigPlan is what would change of a node's config. Values are secret;
// names of keys are not.
type ConfigPlan struct {
	SHA256   string `json:"sha256"`
	Type     string `json:"type"`               // controlplane, worker
	Hostname string `json:"hostname,omitempty"` // empty: made by Talos
	// Running is the digest of the config that the server runs now, Changes
	// the keys that differ from it. Unread says why there is neither.
	Running string   `json:"running,omitempty"`
	Changes []string `json:"changes,omitempty"`
	Unread  string   `json:"unread,omitempty"`
}
