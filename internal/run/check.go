package run

// WorkflowCheck checks a lot and touches nothing: `provision --dry-run`.
const WorkflowCheck = "CheckLot"

// ActivityCheck is preflight with a look at what a run would do.
const ActivityCheck = "check"

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
