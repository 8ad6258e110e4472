package activities

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// preflight proves that lot, config and server fit together, and touches
// nothing. It reports all that is wrong at once.
func (a *Activities) preflight(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	b.step("checking config and server")
	networks, err := a.provider.Networks(ctx, in.Node.Zone, in.Node.ServerID)
	if err != nil {
		return run.PhaseOutput{}, err
	}
	vlan, err := autoVLAN(in.Node, networks)
	if err != nil {
		return run.PhaseOutput{}, err
	}
	in.Facts.Preflight = &run.Checked{VLAN: vlan}
	s, err := a.open(in)
	if err != nil {
		return run.PhaseOutput{}, err
	}
	server, err := a.provider.Describe(ctx, in.Node.Zone, in.Node.ServerID)
	if err != nil {
		return run.PhaseOutput{}, err
	}
	found := []error{checkServer(in, server)}
	found = append(found, checkVLANs(in.Node.ServerName, s.config.VLANs, networks), a.checkKeys(ctx),
		checkEndpoint(ctx, net.DefaultResolver.LookupHost, in.Node, s.config, server.Addresses))

	b.step("looking at the image")
	look, err := a.lookAtImage(ctx, in.Node.Image)
	found = append(found, err)

	facts := in.Facts
	if len(server.Addresses) > 0 {
		facts.Address = server.Addresses[0]
		in.Facts = facts
		b.step("looking whether the server is a live node")
		found = append(found, a.checkNotLive(ctx, in, s))
	}
	if err := together(found); err != nil {
		return run.PhaseOutput{}, err
	}
	facts.Preflight = &run.Checked{
		ServerName: server.Name, Status: server.Status, BootType: string(server.BootType),
		ImageSize: look.size, ImageFormat: look.format, VLANs: s.config.VLANs, VLAN: vlan, Warnings: s.config.Warnings,
		Volumes: s.config.UserVolumes,
	}
	return run.PhaseOutput{Facts: facts, Summary: fmt.Sprintf("server %s at %s fits the lot, image is %s", server.Name, facts.Address, look.format)}, nil
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

// Looks at the Talos port before a server counts as no live node: a single
// answer may be lost, and a live node that is taken for a dead one is erased.
const (
	liveLooks = 3
	liveEvery = 2 * time.Second
)

// checkNotLive refuses a server that is a configured Talos node, or may be
// one, unless the lot says that it is provisioned again. The node that this
// run itself has booted is none: what is left to do does not erase it.
func (a *Activities) checkNotLive(ctx context.Context, in run.PhaseInput, s *secrets) error {
	if in.Node.Reprovision || in.Facts.Booted != nil {
		return nil
	}
	seen, err := lookLive(ctx, talosAddr(in))
	if err != nil {
		return err
	}
	const remedy = "take it out of the cluster first, or say `reprovision: true` for it in the lot file if it may be erased"
	switch seen {
	case talos.Configured:
		whose := "some Talos cluster"
		if c, err := talos.Dial(ctx, talosAddr(in), s.client); err == nil {
			whose = "this lot's cluster"
			_ = c.Close()
		}
		return fault.Operator(remedy, "server %s is a live, configured member of %s", in.Node.ServerName, whose)
	case talos.Resetting:
		return fault.Operator(remedy, "server %s resets every connection to its Talos API, as a configured node does that cannot reach its control plane", in.Node.ServerName)
	default:
		return nil
	}
}

// lookLive looks until the answer is sure, and gives the last one otherwise.
func lookLive(ctx context.Context, addr string) (talos.APIState, error) {
	for look := 1; ; look++ {
		seen, err := talos.Probe(ctx, addr)
		if err != nil {
			return "", err
		}
		doubtful := seen.State == talos.Resetting || seen.State == talos.Silent
		if !doubtful || look == liveLooks {
			return seen.State, nil
		}
		if err := sleep(ctx, liveEvery); err != nil {
			return "", err
		}
	}
}

// together makes one error of several: Transient only if all of them are,
// so that what an operator must mend is shown at once.
func together(found []error) error {
	var all []*fault.Error
	for _, err := range found {
		if err == nil {
			continue
		}
		f, ok := fault.As(err)
		if !ok {
			return err
		}
		all = append(all, f)
	}
	if len(all) <= 1 {
		return first(all)
	}
	slices.SortStableFunc(all, func(x, y *fault.Error) int { return rank(x) - rank(y) })
	var texts, causes = []string{}, []error{}
	for i, f := range all {
		if f.Class == fault.Transient && all[0].Class != fault.Transient {
			continue // passes by itself; the others do not
		}
		text := f.Message
		if f.Remedy != "" {
			text += " (" + f.Remedy + ")"
		}
		texts, causes = append(texts, fmt.Sprintf("%d. %s", i+1, text)), append(causes, f)
	}
	if len(texts) == 1 {
		return all[0]
	}
	return &fault.Error{Class: all[0].Class, Message: strings.Join(texts, " "), Remedy: "mend all of these, then retry", Cause: errors.Join(causes...)}
}

func first(all []*fault.Error) error {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func rank(f *fault.Error) int {
	if f.Class == fault.Transient {
		return 1
	}
	return 0
}
