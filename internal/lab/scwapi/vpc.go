package scwapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// privateNetwork is a private network of the VPC API.
type privateNetwork struct {
	ID                             string       `json:"id"`
	Name                           string       `json:"name"`
	OrganizationID                 string       `json:"organization_id"`
	ProjectID                      string       `json:"project_id"`
	Region                         string       `json:"region"`
	Tags                           []string     `json:"tags"`
	CreatedAt                      stamp        `json:"created_at"`
	UpdatedAt                      stamp        `json:"updated_at"`
	Subnets                        []subnetJSON `json:"subnets"`
	VpcID                          string       `json:"vpc_id"`
	DHCPEnabled                    bool         `json:"dhcp_enabled"`
	DefaultRoutePropagationEnabled bool         `json:"default_route_propagation_enabled"`
}

type subnetJSON struct {
	ID               string `json:"id"`
	CreatedAt        stamp  `json:"created_at"`
	UpdatedAt        stamp  `json:"updated_at"`
	Subnet           string `json:"subnet"`
	ProjectID        string `json:"project_id"`
	PrivateNetworkID string `json:"private_network_id"`
	VpcID            string `json:"vpc_id"`
}

// network gives a private network, nil for none.
func (a *API) network(id string) *privateNetwork {
	i := slices.IndexFunc(a.networks, func(n *privateNetwork) bool { return n.ID == id })
	if i < 0 {
		return nil
	}
	return a.networks[i]
}

// addVPCNetwork makes a private network with an IPv4 and an IPv6 subnet.
func (a *API) addVPCNetwork(id, name, region string, tags []string) *privateNetwork {
	now, n := a.stamp(), len(a.networks)+1
	network := &privateNetwork{
		ID: id, Name: name, OrganizationID: OrganizationID, ProjectID: ProjectID, Region: region,
		Tags: append([]string{}, tags...), CreatedAt: now, UpdatedAt: now, VpcID: vpcID, DHCPEnabled: true,
	}
	for _, subnet := range []string{
		fmt.Sprintf("172.16.%d.0/22", n*4%256),
		fmt.Sprintf("fd64:badd:7710:%x::/64", n%0x10000),
	} {
		network.Subnets = append(network.Subnets, subnetJSON{ID: a.newID(), CreatedAt: now, UpdatedAt: now,
			Subnet: subnet, ProjectID: ProjectID, PrivateNetworkID: id, VpcID: vpcID})
	}
	a.networks = append(a.networks, network)
	return network
}

func (a *API) listVPCNetworks(r *request) (any, *problem) {
	query := r.URL.Query()
	var found []privateNetwork
	for _, n := range a.networks {
		if n.Region == r.PathValue("region") &&
			strings.Contains(n.Name, query.Get("name")) &&
			wants(query["tags"], n.Tags...) &&
			wants(query["project_id"], n.ProjectID) &&
			wants(query["vpc_id"], n.VpcID) {
			found = append(found, *n)
		}
	}
	return page(r, "private_networks", found)
}

func (a *API) createVPCNetwork(r *request) (any, *problem) {
	var body struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if p := r.decode(&body); p != nil {
		return nil, p
	}
	return *a.addVPCNetwork(a.newID(), body.Name, r.PathValue("region"), body.Tags), nil
}

// vpcNetwork gives the private network that a request names.
func (a *API) vpcNetwork(r *request) (*privateNetwork, *problem) {
	id := r.PathValue("network")
	n := a.network(id)
	if n == nil || n.Region != r.PathValue("region") {
		return nil, noResource("private_network", id)
	}
	return n, nil
}

func (a *API) getVPCNetwork(r *request) (any, *problem) {
	n, p := a.vpcNetwork(r)
	if p != nil {
		return nil, p
	}
	return *n, nil
}

// deleteVPCNetwork refuses a network in use (assumed); a server that is being
// deleted does not count, as recorded.
func (a *API) deleteVPCNetwork(r *request) (any, *problem) {
	n, p := a.vpcNetwork(r)
	if p != nil {
		return nil, p
	}
	for _, s := range a.servers {
		if s.Status != "deleting" && s.attachment(n.ID) != nil {
			return nil, typed(http.StatusPreconditionFailed, "precondition_failed", "resource is still in use",
				map[string]any{"precondition": "resource_still_in_use", "help_message": "detach it from its servers"})
		}
	}
	a.networks = slices.DeleteFunc(a.networks, func(other *privateNetwork) bool { return other == n })
	return nil, nil
}

// regionOf is a zone without its number.
func regionOf(zone string) string { return zone[:strings.LastIndex(zone, "-")] }
