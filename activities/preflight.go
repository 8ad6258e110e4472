package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// finding is what preflight has found out about a server, as far as it came.
type finding struct {
	in      run.PhaseInput  // with the address and the VLAN
	secrets *secrets        // nil: not opened
	server  provider.Server // zero: not described
	live    talos.APIState  // of the Talos port; empty: not looked at
}

// preflight proves that lot, config and server fit together, and touches
// nothing. It reports all that is wrong at once. What it has found out is
// told with an error too.
func (a *Activities) preflight(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, *finding, error) {
	b.step("checking config and server")
	f := &finding{in: in}
	networks, err := f.open(ctx, a)
	if err != nil {
		return run.PhaseOutput{}, f, err
	}
	in = f.in
	found := []error{checkServer(in, f.server)}
	found = append(found, checkVLANs(in.Node.ServerName, f.secrets.config.VLANs, networks), a.checkKeys(ctx),
		checkEndpoint(ctx, a.lookup, in.Node, f.secrets.config, f.server.Addresses))

	b.step("looking at the image")
	look, err := a.look(ctx, in.Node.Image)
	found = append(found, err)

	if in.Facts.Address != "" {
		b.step("looking whether the server is a live node")
		f.live, err = checkNotLive(ctx, in, f.secrets)
		found = append(found, err)
	}
	if err := together(found); err != nil {
		return run.PhaseOutput{}, f, err
	}
	facts := in.Facts
	facts.Preflight.ImageSize, facts.Preflight.ImageFormat = look.size, look.format
	facts.Preflight.VLANs, facts.Preflight.Warnings = f.secrets.config.VLANs, f.secrets.config.Warnings
	facts.Preflight.Volumes = f.secrets.config.UserVolumes
	return run.PhaseOutput{Facts: facts, Summary: fmt.Sprintf("server %s at %s fits the lot, image is %s", f.server.Name, facts.Address, look.format)}, f, nil
}

// open asks the provider about the server and opens what the run carries
// sealed, which may need the server's VLAN.
func (f *finding) open(ctx context.Context, a *Activities) ([]provider.Network, error) {
	node := f.in.Node
	networks, err := a.provider.Networks(ctx, node.Zone, node.ServerID)
	if err != nil {
		return nil, err
	}
	vlan, err := autoVLAN(node, networks)
	if err != nil {
		return nil, err
	}
	f.in.Facts.Preflight = &run.Checked{VLAN: vlan}
	if f.secrets, err = a.open(f.in); err != nil {
		return nil, err
	}
	if f.server, err = a.provider.Describe(ctx, node.Zone, node.ServerID); err != nil {
		return nil, err
	}
	f.in.Facts.Preflight.ServerName, f.in.Facts.Preflight.Status = f.server.Name, f.server.Status
	f.in.Facts.Preflight.BootType = string(f.server.BootType)
	if len(f.server.Addresses) > 0 {
		f.in.Facts.Address = f.server.Addresses[0]
	}
	return networks, nil
}

// checkServer compares the server with the lot.
func checkServer(in run.PhaseInput, s provider.Server) error {
	var found []error
	if s.Name != in.Node.ServerName {
		found = append(found, fault.Operator("correct the id or the name in the lot file, so that no other server is erased",
			"server %s is called %q at the provider, the lot says %q", in.Node.ServerID, s.Name, in.Node.ServerName))
	}
	if s.Protected {
		found = append(found, fault.Operator("take the protection off in the provider's console if it may be erased",
			"server %s is protected at the provider", in.Node.ServerName))
	}
	if len(s.Addresses) == 0 {
		found = append(found, fault.Operator("give it a public address at the provider", "server %s has no public address", in.Node.ServerName))
	}
	if err := unusable(in, s); err != nil {
		found = append(found, err)
	} else if !s.Settled {
		found = append(found, fault.Retry("server %s is %q at the provider", in.Node.ServerName, s.Status))
	}
	return together(found)
}

// checkVLANs compares the config's VLANs with the server's private networks:
// a node with a VLAN that is not its own never joins.
func checkVLANs(server string, wanted []uint32, networks []provider.Network) error {
	var have []string
	for _, n := range networks {
		if n.VLAN == 0 {
			if len(wanted) > 0 {
				return fault.Retry("private network %s of server %s has no VLAN number yet (%s)", n.ID, server, n.Status)
			}
			continue
		}
		have = append(have, fmt.Sprint(n.VLAN))
	}
	remedy := "attach the private network at the provider or correct the VLAN in the config; the server's VLANs are: " + listOr(have, "none")
	if len(wanted) > 1 {
		return fault.Operator("keep the one VLAN by which the node joins; the server's VLANs are: "+listOr(have, "none"),
			"the config of server %s has %d VLANs (%v), with which nodes have been seen not to join", server, len(wanted), wanted)
	}
	for _, v := range wanted {
		if !slices.Contains(have, fmt.Sprint(v)) {
			return fault.Operator(remedy, "the config has VLAN %d, which server %s does not have", v, server)
		}
	}
	return nil
}

// autoVLAN is the number for `vlan: auto`, zero without it: that of the one
// private network that the server is attached to.
func autoVLAN(node run.Node, networks []provider.Network) (uint32, error) {
	if node.VLAN != run.VLANAuto {
		return 0, nil
	}
	var have []string
	for _, n := range networks {
		if n.VLAN == 0 {
			return 0, fault.Retry("private network %s of server %s has no VLAN number yet (%s)", n.ID, node.ServerName, n.Status)
		}
		have = append(have, fmt.Sprint(n.VLAN))
	}
	if len(networks) != 1 {
		return 0, fault.Operator("attach exactly one private network at the provider, or write the VLAN number into the config",
			"`vlan: auto` of server %s needs one private network, and its VLANs are: %s", node.ServerName, listOr(have, "none"))
	}
	return networks[0].VLAN, nil
}

func listOr(items []string, none string) string {
	if len(items) == 0 {
		return none
	}
	return strings.Join(items, ", ")
}

// checkKeys makes sure that the worker's key can log in to rescue.
func (a *Activities) checkKeys(ctx context.Context) error {
	ids, err := a.provider.SSHKeyIDs(ctx, a.dialer.PublicKeys())
	if err == nil && len(ids) == 0 {
		err = fault.Operator("register the worker's public key with the provider (`scw iam ssh-key create`)",
			"the provider knows none of the worker's SSH keys, so nobody could log in to rescue")
	}
	return err
}
