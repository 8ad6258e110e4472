package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/run"
)

type retryFlags struct {
	from, reason, batch string
	anotherDisk         bool
}

func (a *app) retryCommand() *cobra.Command {
	o := retryFlags{}
	cmd := &cobra.Command{
		Use:   "retry LOT NODE",
		Short: "Let a stuck node go on",
		Long: `Lets a stuck node go on with the phase that it is stuck in, or with an earlier
one by --from. With --from reboot-rescue the server is installed from the start:
its disks are erased again.

With --batch the node goes on with what the corrected lot file says of it:
another image or digest, disk rule, config, timeout. It goes back to preflight,
which checks all of it, and from there to where the change begins to matter.
Once disks may be erased the run stays with its disk, unless --another-disk
allows the corrected rule to choose another one.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.retry(cmd.Context(), args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "", "phase to go on with: "+phaseList())
	f.StringVar(&o.reason, "reason", "", "why, for the history")
	f.StringVar(&o.batch, "batch", "", "the corrected lot file")
	f.BoolVar(&o.anotherDisk, "another-disk", false, "the corrected lot file may choose another system disk")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(strings.Split(phaseList(), ", "), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("batch", lotFiles)
	return cmd
}

func (a *app) retry(ctx context.Context, lotName, nodeName string, o retryFlags) error {
	request := run.RetryRequest{From: run.Phase(o.from), Reason: o.reason, AnotherDisk: o.anotherDisk}
	switch {
	case o.from != "" && !slices.Contains(run.Phases(), request.From):
		return refuse("use one of "+phaseList(), "there is no phase %q", o.from)
	case o.anotherDisk && o.batch == "":
		return refuse("name the lot file that chooses it with --batch", "--another-disk alone chooses no disk")
	case o.batch != "":
		in, err := a.corrected(ctx, lotName, nodeName, o.batch)
		if err != nil {
			return err
		}
		request.Input = in
	}
	n, err := a.steer(ctx, lotName, nodeName, run.UpdateRetry, request)
	if err != nil {
		return err
	}
	next := request.From
	switch {
	case request.Input != nil:
		next = run.Preflight
	case next == "":
		next = n.Phase
	}
	return a.said(n, run.UpdateRetry, fmt.Sprintf("%s goes on with %s; follow it with `starter status %s --watch`", nodeName, next, lotName))
}

// corrected is a node's input as a corrected lot file has it.
func (a *app) corrected(ctx context.Context, lotName, nodeName, path string) (*run.NodeInput, error) {
	l, rendered, err := a.load(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	if l.Name != lotName {
		return nil, refuse("name the lot's own file", "%s is the file of lot %s, not %s", path, l.Name, lotName)
	}
	in, err := a.input(l, rendered)
	if err != nil {
		return nil, err
	}
	for i := range in.Nodes {
		if node := in.Node(i); node.Node.Name == nodeName {
			return &node, nil
		}
	}
	return nil, refuse("add the node to it", "%s has no node %q", path, nodeName)
}

func phaseList() string {
	var names []string
	for _, p := range run.Phases() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}
