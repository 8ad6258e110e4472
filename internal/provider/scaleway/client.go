// Package scaleway rents from Scaleway Elastic Metal: provider.Provider on
// the provider's own SDK. It never waits for a state: its callers do, on
// what they observe.
package scaleway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"

	baremetal "github.com/scaleway/scaleway-sdk-go/api/baremetal/v1"
	networks "github.com/scaleway/scaleway-sdk-go/api/baremetal/v3"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"github.com/scaleway/scaleway-sdk-go/validation"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
)

// Name is the provider's name in lot files and workflow IDs.
const Name = "scaleway"

// Client is a Scaleway account. It is safe for concurrent use.
type Client struct {
	sdk      *scw.Client
	servers  *baremetal.API
	networks *networks.PrivateNetworkAPI
	secret   string // to keep it out of errors
}

var _ provider.Provider = (*Client)(nil)

// New makes a client without calling the API. Errors are NeedsOperator and
// say where credentials were looked for.
func New(cfg Config) (*Client, error) {
	profile, err := cfg.profile()
	if err != nil {
		return nil, err
	}
	do := newDoer(cfg.Timeout, profile.Insecure != nil && *profile.Insecure)
	profile.Insecure = nil // the SDK can only apply it to its own HTTP client
	version := cfg.Version
	if version == "" {
		version = "dev"
	}
	sdk, err := scw.NewClient(scw.WithProfile(profile), scw.WithUserAgent("ironlot/"+version), scw.WithHTTPClient(do))
	if err != nil {
		return nil, &fault.Error{Class: fault.NeedsOperator, Cause: err,
			Message: "the Scaleway settings are refused: " + text(err),
			Remedy:  "check the Scaleway config file and the SCW_* environment"}
	}
	return &Client{
		sdk:      sdk,
		servers:  baremetal.NewAPI(sdk),
		networks: networks.NewPrivateNetworkAPI(sdk),
		secret:   *profile.SecretKey,
	}, nil
}

// Describe implements provider.Provider.
func (c *Client) Describe(ctx context.Context, zone, serverID string) (provider.Server, error) {
	s, err := c.get(ctx, zone, serverID)
	if err != nil {
		return provider.Server{}, err
	}
	return described(s), nil
}

// described is a server in Ironlot's words, without the rescue password.
func described(s *baremetal.Server) provider.Server {
	status, settled := standing(s)
	d := provider.Server{
		ID:        s.ID,
		Name:      s.Name,
		Zone:      s.Zone.String(),
		Status:    status,
		Settled:   settled,
		Usable:    settled && s.Status == baremetal.ServerStatusReady,
		BootType:  provider.BootType(s.BootType),
		Protected: s.Protected,
		Addresses: addresses(s.IPs),
		Tags:      s.Tags,
	}
	if s.RescueServer != nil {
		d.RescueUser = s.RescueServer.User
	}
	return d
}

// Networks implements provider.Provider.
func (c *Client) Networks(ctx context.Context, zone, serverID string) ([]provider.Network, error) {
	op := "list the private networks of " + place(zone, serverID)
	if err := checkPlace(op, zone, serverID); err != nil {
		return nil, err
	}
	resp, err := c.networks.ListServerPrivateNetworks(&networks.PrivateNetworkAPIListServerPrivateNetworksRequest{
		Zone: scw.Zone(zone), ServerID: &serverID,
	}, scw.WithContext(ctx), scw.WithAllPages())
	if err != nil {
		return nil, c.fail(op, err)
	}
	found := make([]provider.Network, 0, len(resp.ServerPrivateNetworks))
	for _, n := range resp.ServerPrivateNetworks {
		found = append(found, attached(n))
	}
	return found, nil
}

// attached is a private network on a server in Ironlot's words.
func attached(n *networks.ServerPrivateNetwork) provider.Network {
	network := provider.Network{ID: n.PrivateNetworkID, Status: n.Status.String()}
	if n.Vlan != nil {
		network.VLAN = *n.Vlan
	}
	return network
}

// RescuePassword implements provider.Provider. A server that has none (yet)
// is a Transient error.
func (c *Client) RescuePassword(ctx context.Context, zone, serverID string) (string, error) {
	s, err := c.get(ctx, zone, serverID)
	if err != nil {
		return "", err
	}
	if s.RescueServer == nil || s.RescueServer.Password == "" {
		return "", fault.Retry("%s has no rescue password while its boot type is %s and its status %s",
			place(zone, serverID), s.BootType, s.Status)
	}
	return s.RescueServer.Password, nil
}

// Reboot implements provider.Provider.
func (c *Client) Reboot(ctx context.Context, zone, serverID string, boot provider.BootType, sshKeyIDs []string) error {
	op := "reboot " + place(zone, serverID) + " into " + string(boot)
	if err := checkBoot(op, zone, serverID, boot); err != nil {
		return err
	}
	_, err := c.servers.RebootServer(&baremetal.RebootServerRequest{
		Zone: scw.Zone(zone), ServerID: serverID,
		BootType: baremetal.ServerBootType(boot), SSHKeyIDs: sshKeyIDs,
	}, scw.WithContext(ctx))
	return c.acted(ctx, op, zone, serverID, err)
}

// Start implements provider.Provider.
func (c *Client) Start(ctx context.Context, zone, serverID string, boot provider.BootType, sshKeyIDs []string) error {
	op := "start " + place(zone, serverID) + " into " + string(boot)
	if err := checkBoot(op, zone, serverID, boot); err != nil {
		return err
	}
	_, err := c.servers.StartServer(&baremetal.StartServerRequest{
		Zone: scw.Zone(zone), ServerID: serverID,
		BootType: baremetal.ServerBootType(boot), SSHKeyIDs: sshKeyIDs,
	}, scw.WithContext(ctx))
	return c.acted(ctx, op, zone, serverID, err)
}

// Stop implements provider.Provider.
func (c *Client) Stop(ctx context.Context, zone, serverID string) error {
	op := "stop " + place(zone, serverID)
	if err := checkPlace(op, zone, serverID); err != nil {
		return err
	}
	_, err := c.servers.StopServer(&baremetal.StopServerRequest{Zone: scw.Zone(zone), ServerID: serverID}, scw.WithContext(ctx))
	return c.acted(ctx, op, zone, serverID, err)
}

// get reads a server.
func (c *Client) get(ctx context.Context, zone, serverID string) (*baremetal.Server, error) {
	op := "describe " + place(zone, serverID)
	if err := checkPlace(op, zone, serverID); err != nil {
		return nil, err
	}
	s, err := c.servers.GetServer(&baremetal.GetServerRequest{Zone: scw.Zone(zone), ServerID: serverID}, scw.WithContext(ctx))
	if err != nil {
		return nil, c.fail(op, err)
	}
	return s, nil
}

// acted judges the outcome of an action. A server that cannot do it now is
// refused with a plain 400 and a text; whether that passes by itself is read
// from the server's status, not from the text.
func (c *Client) acted(ctx context.Context, op, zone, serverID string, err error) error {
	if err == nil {
		return nil
	}
	resp, ok := errors.AsType[*scw.ResponseError](err)
	if ok && resp.StatusCode == http.StatusBadRequest {
		if s, e := c.Describe(ctx, zone, serverID); e == nil && !s.Settled {
			return &fault.Error{Class: fault.Transient, Cause: c.cause(err, false),
				Message: "cannot " + op + " while its status is " + s.Status}
		}
	}
	return c.fail(op, err)
}

// standing gives the provider's word for what the server is doing, and
// whether it is anything but a state that passes by itself. An installation
// by the provider is one although the status says ready.
func standing(s *baremetal.Server) (status string, settled bool) {
	switch s.Status {
	case baremetal.ServerStatusDelivering, baremetal.ServerStatusOrdered, baremetal.ServerStatusStopping,
		baremetal.ServerStatusStarting, baremetal.ServerStatusDeleting, baremetal.ServerStatusResetting,
		baremetal.ServerStatusMigrating:
		return s.Status.String(), false
	}
	if s.Install != nil && s.Status == baremetal.ServerStatusReady {
		switch s.Install.Status {
		case baremetal.ServerInstallStatusToInstall, baremetal.ServerInstallStatusInstalling:
			return s.Install.Status.String(), false
		}
	}
	return s.Status.String(), true
}

// addresses gives the addresses, IPv4 first; the API lists them in any order.
func addresses(ips []*baremetal.IP) []string {
	v4 := func(ip net.IP) bool { return ip.To4() != nil }
	ips = slices.DeleteFunc(slices.Clone(ips), func(ip *baremetal.IP) bool { return ip == nil || ip.Address == nil })
	slices.SortStableFunc(ips, func(a, b *baremetal.IP) int {
		switch {
		case v4(a.Address) == v4(b.Address):
			return 0
		case v4(a.Address):
			return -1
		}
		return 1
	})
	found := make([]string, 0, len(ips))
	for _, ip := range ips {
		found = append(found, ip.Address.String())
	}
	return found
}

// place names a server in a message.
func place(zone, serverID string) string { return "server " + serverID + " in zone " + zone }

// checkPlace keeps what is no zone and no ID out of request paths.
func checkPlace(op, zone, serverID string) error {
	if !validation.IsZone(zone) {
		return fault.Operator("use one such as fr-par-2", "cannot %s: the zone does not have the form of one", op)
	}
	if !validation.IsUUID(serverID) {
		return fault.Operator("copy it from the Scaleway console", "cannot %s: the server ID is not a UUID", op)
	}
	return nil
}

// checkBoot also refuses what is no boot type: the SDK would send an empty
// one as "unknown_boot_type", and the API would take it.
func checkBoot(op, zone, serverID string, boot provider.BootType) error {
	if boot != provider.BootNormal && boot != provider.BootRescue {
		return fault.Operator("use normal or rescue", "cannot %s: %q is not a boot type", op, boot)
	}
	return checkPlace(op, zone, serverID)
}
