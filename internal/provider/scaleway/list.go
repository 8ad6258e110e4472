package scaleway

import (
	"context"

	baremetal "github.com/scaleway/scaleway-sdk-go/api/baremetal/v1"
	networks "github.com/scaleway/scaleway-sdk-go/api/baremetal/v3"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"github.com/scaleway/scaleway-sdk-go/validation"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
)

// listPage is how many items a page of a list has; the API takes up to 100.
const listPage uint32 = 100

// List implements provider.Provider.
func (c *Client) List(ctx context.Context, zone string) (provider.Listing, error) {
	op := "list the servers of zone " + zone
	if !validation.IsZone(zone) {
		return provider.Listing{}, fault.Operator("use one such as fr-par-2", "cannot list servers: the zone does not have the form of one")
	}
	size := listPage
	servers, err := c.servers.ListServers(&baremetal.ListServersRequest{Zone: scw.Zone(zone), PageSize: &size},
		scw.WithContext(ctx), scw.WithAllPages())
	if err != nil {
		return provider.Listing{}, c.fail(op, err)
	}
	attachments, err := c.networks.ListServerPrivateNetworks(&networks.PrivateNetworkAPIListServerPrivateNetworksRequest{
		Zone: scw.Zone(zone), PageSize: &size,
	}, scw.WithContext(ctx), scw.WithAllPages())
	if err != nil {
		return provider.Listing{}, c.fail(op, err)
	}
	listing := provider.Listing{Servers: map[string]provider.Server{}, Networks: map[string][]provider.Network{}}
	for _, s := range servers.Servers {
		listing.Servers[s.ID] = described(s)
	}
	for _, n := range attachments.ServerPrivateNetworks {
		listing.Networks[n.ServerID] = append(listing.Networks[n.ServerID], attached(n))
	}
	return listing, nil
}
