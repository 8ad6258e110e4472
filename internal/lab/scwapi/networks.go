package scwapi

import (
	"maps"
	"slices"
	"strings"
)

// attachment is a private network on a server.
type attachment struct{ attachmentJSON }

// shown is the attachment in the version of the API that asks.
func (n *attachment) shown(r *request) attachmentJSON {
	v := n.attachmentJSON
	v.IpamIPIDs = nil
	if strings.HasPrefix(r.URL.Path, "/baremetal/v3/") {
		ids := append([]string{}, *n.IpamIPIDs...)
		v.IpamIPIDs = &ids
	}
	return v
}

// attach begins to attach a private network. The VLAN is there at once, the
// addresses as well, as recorded.
func (a *API) attach(s *server, networkID string, ipam []string) *attachment {
	if len(ipam) == 0 {
		ipam = []string{a.newID(), a.newID()} // IPv4 and IPv6
	}
	vlan := uint32(a.number(100, 4000))
	now := a.stamp()
	n := &attachment{attachmentJSON{
		ID: a.newID(), ProjectID: ProjectID, ServerID: s.ID, PrivateNetworkID: networkID,
		Vlan: &vlan, Status: "attaching", CreatedAt: now, UpdatedAt: now, IpamIPIDs: &ipam,
	}}
	s.networks = append(s.networks, n)
	a.later(s, a.latency.Attach, func() {
		if n.Status == "attaching" {
			n.Status = "attached"
		}
	}).quiet = true
	return n
}

// attachAtOnce is for a server that has its network from the start.
func (a *API) attachAtOnce(s *server, network Network) {
	if network.ID == "" {
		network.ID = a.newID()
	}
	if a.network(network.ID) == nil {
		a.addVPCNetwork(network.ID, "lab", regionOf(s.Zone), nil)
	}
	n := a.attach(s, network.ID, nil)
	n.Status = "attached"
	if network.VLAN != 0 {
		n.Vlan = &network.VLAN
	}
}

// detach begins to detach a private network.
func (a *API) detach(s *server, n *attachment) {
	n.Status, n.IpamIPIDs = "detaching", &[]string{}
	a.later(s, a.latency.Detach, func() {
		s.networks = slices.DeleteFunc(s.networks, func(other *attachment) bool { return other == n })
	}).quiet = true
}

func (a *API) listAttachments(r *request) (any, *problem) {
	query := r.URL.Query()
	found := []attachmentJSON{}
	for _, s := range a.servers {
		for _, n := range s.networks {
			if s.Zone == r.PathValue("zone") &&
				wants(query["server_id"], n.ServerID) &&
				wants(query["private_network_id"], n.PrivateNetworkID) &&
				wants(query["project_id"], n.ProjectID) &&
				wants(query["organization_id"], OrganizationID) {
				found = append(found, n.shown(r))
			}
		}
	}
	return page(r, "server_private_networks", found)
}

// networkable gives a server that can have private networks.
func (a *API) networkable(r *request) (*server, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	if s.option(privateNetworkID) == nil {
		return nil, precondition("the option Private Network is not enabled")
	}
	return s, nil
}

func (a *API) setAttachments(r *request) (any, *problem) {
	s, p := a.networkable(r)
	if p != nil {
		return nil, p
	}
	var body struct {
		V1 []string            `json:"private_network_ids"`
		V3 map[string][]string `json:"per_private_network_ipam_ip_ids"`
	}
	if p := r.decode(&body); p != nil {
		return nil, p
	}
	wanted := maps.Clone(body.V3)
	if wanted == nil {
		wanted = map[string][]string{}
	}
	for _, id := range body.V1 {
		wanted[id] = nil
	}
	for id := range wanted {
		if a.network(id) == nil {
			return nil, noResource("private_network", id)
		}
	}
	for _, n := range slices.Clone(s.networks) {
		if _, keep := wanted[n.PrivateNetworkID]; !keep && n.Status != "detaching" {
			a.detach(s, n)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if s.attachment(id) == nil {
			a.attach(s, id, wanted[id])
		}
	}
	shown := []attachmentJSON{}
	for _, n := range s.networks {
		shown = append(shown, n.shown(r))
	}
	return map[string]any{"server_private_networks": shown}, nil
}

func (a *API) addAttachment(r *request) (any, *problem) {
	s, p := a.networkable(r)
	if p != nil {
		return nil, p
	}
	var body struct {
		ID   string   `json:"private_network_id"`
		IPAM []string `json:"ipam_ip_ids"`
	}
	if p := r.decode(&body); p != nil {
		return nil, p
	}
	if a.network(body.ID) == nil {
		return nil, noResource("private_network", body.ID)
	}
	if s.attachment(body.ID) != nil {
		return nil, precondition("the private network is attached already")
	}
	return a.attach(s, body.ID, body.IPAM).shown(r), nil
}

func (a *API) deleteAttachment(r *request) (any, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	n := s.attachment(r.PathValue("network"))
	if n == nil {
		return nil, noResource("server_private_network", r.PathValue("network"))
	}
	a.detach(s, n)
	return nil, nil
}

// attachment gives the attachment of a network, nil for none. One that is
// being detached does not count.
func (s *server) attachment(networkID string) *attachment {
	for _, n := range s.networks {
		if n.PrivateNetworkID == networkID && n.Status != "detaching" {
			return n
		}
	}
	return nil
}
