package run

// Other is a node of the lot that a run of the lot leaves alone, as an earlier
// run of the lot has left it.
type Other struct {
	Node   Node   `json:"node"`            // who it is; nothing of what it was told
	RunID  string `json:"runId,omitempty"` // of its workflow; empty: it was never started
	State  State  `json:"state"`
	Phase  Phase  `json:"phase,omitempty"`
	Reason string `json:"reason,omitempty"` // why it was stuck, aborted or refused
}

// Identity is the node without what its run was told to do.
func (n Node) Identity() Node {
	return Node{
		Lot: n.Lot, Name: n.Name, Provider: n.Provider, Zone: n.Zone, ServerID: n.ServerID, ServerName: n.ServerName,
		Lab: n.Lab, ControlPlane: n.ControlPlane,
	}
}

// LeftAlone gives the others that are left alone still: no node of the input has
// their name, or their server.
func (in LotInput) LeftAlone() []Other {
	taken := map[string]bool{}
	for _, n := range in.Whole() {
		taken[n.Node.Name], taken[n.Node.ID()] = true, true
	}
	var left []Other
	for _, o := range in.Others {
		if !taken[o.Node.Name] && !taken[o.Node.ID()] {
			left = append(left, o)
		}
	}
	return left
}
