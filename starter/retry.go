package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

type retryFlags struct {
	from, reason, batch string
	anotherDisk, stuck  bool
	yes                 bool
}

func (a *app) retryCommand() *cobra.Command {
	o := retryFlags{}
	cmd := &cobra.Command{
		Use:   "retry LOT NODE | retry LOT --stuck",
		Short: "Let a stuck node, or all of them, go on",
		Long: `Lets a stuck node go on with the phase that it is stuck in, or with an earlier
one by --from. With --from reboot-rescue the server is installed from the start:
its disks are erased again. With --stuck all stuck nodes of the lot go on; one
that refuses is named, and holds up no other.

With --batch the node goes on with what the corrected lot file says of it:
another image or digest, disk rule, config, timeout. It goes back to preflight,
which checks all of it, and from there to where the change begins to matter: a
new talosconfig or kubeconfig alone applies no machine config again.
Once disks may be erased the run stays with its disk, unless --another-disk
allows the corrected rule to choose another one.

A corrected file may let a run erase what nobody has agreed to: a server that is
a live node ("reprovision: true"), or another disk. Then retry shows what is
erased and asks, as provision does.`,
		Args:              takes(1, argLot, argMaybeNode),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.stuck == (len(args) == 2) {
				return refuse("give LOT NODE, or LOT --stuck for all that are stuck", "retry takes one node or all stuck ones")
			}
			return a.retry(cmd.Context(), args[0], args[1:], o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.stuck, "stuck", false, "all stuck nodes of the lot")
	f.StringVar(&o.from, "from", "", "phase to go on with: "+phaseList())
	f.StringVar(&o.reason, "reason", "", reasonHelp)
	f.StringVar(&o.batch, "batch", "", "the corrected lot file")
	f.BoolVar(&o.anotherDisk, "another-disk", false, "the corrected lot file may choose another system disk")
	f.BoolVarP(&o.yes, "yes", "y", false, "erase what the corrected lot file adds without asking")
	words(cmd, "from", strings.Split(phaseList(), ", ")...)
	freeText(cmd, "reason")
	_ = cmd.RegisterFlagCompletionFunc("batch", lotFiles)
	return cmd
}

// retry lets the named node go on, or all that are stuck when none is named.
func (a *app) retry(ctx context.Context, lotName string, nodes []string, o retryFlags) error {
	request := run.RetryRequest{From: run.Phase(o.from), Reason: o.reason, AnotherDisk: o.anotherDisk}
	switch {
	case o.from != "" && !slices.Contains(run.Phases(), request.From):
		return refuse("use one of "+phaseList(), "there is no phase %q", o.from)
	case o.anotherDisk && o.batch == "":
		return refuse("name the lot file that chooses it with --batch", "--another-disk alone chooses no disk")
	}
	var corrected *prepared
	if o.batch != "" {
		var err error
		if corrected, err = a.prepareFor(ctx, lotName, o.batch, nil); err != nil {
			return err
		}
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	l, chosen, err := choose(ctx, c.Client, lotName, nodes)
	if err != nil {
		return err
	}
	if err := a.agreeToMore(ctx, corrected, chosen, o); err != nil {
		return err
	}
	var problems []error
	for _, n := range chosen {
		if err := a.retryNode(ctx, c.Client, l, n, request, corrected); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// choose finds the named nodes of a lot, or those that are stuck, and the lot.
func choose(ctx context.Context, c client.Client, lotName string, nodes []string) (track.Lot, []track.Node, error) {
	l, err := track.New(c, lotName).Look(ctx)
	if err != nil {
		return l, nil, err
	}
	if len(nodes) == 0 {
		chosen := l.Stuck()
		if len(chosen) == 0 {
			return l, nil, refuse(fmt.Sprintf("look at it with `starter status %s`", lotName), "no node of lot %s is stuck", lotName)
		}
		return l, chosen, nil
	}
	n, err := pick(l, nodes[0])
	return l, []track.Node{n}, err
}

// retryNode lets one node go on, with its corrected input if there is one.
func (a *app) retryNode(ctx context.Context, c client.Client, l track.Lot, n track.Node, request run.RetryRequest, corrected *prepared) error {
	next := cmp.Or(request.From, n.Phase)
	if corrected != nil {
		in, err := corrected.node(n.Node.Name)
		if err != nil {
			return err
		}
		request.Input, next = in, run.Preflight
	}
	if err := steer(ctx, c, l, n, run.UpdateRetry, request); err != nil {
		return err
	}
	return a.said(done{Lot: l.Name, Node: n.Node.Name, Done: run.UpdateRetry, Simulated: l.Lab}, fmt.Sprintf("%s goes on with %s; follow it with `starter status %s --watch`", n.Node.Name, next, n.Node.Lot))
}

// node is the input of a node.
func (p *prepared) node(name string) (*run.NodeInput, error) {
	i, ok := p.index[name]
	if !ok {
		return nil, refuse("add the node to it", "the lot file has no node %q", name)
	}
	in := p.in.Node(i)
	return &in, nil
}

func phaseList() string {
	var names []string
	for _, p := range run.Phases() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}
