package main

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

func (a *app) uiCommand() *cobra.Command {
	var o uiFlags
	cmd := &cobra.Command{
		Use:   "ui [LOT [NODE]]",
		Short: "Open Temporal's Web UI at a lot's or a node's page",
		Long: `Opens Temporal's Web UI in the browser, and prints the address: the page of a lot,
which tells of each stuck node why it is stuck; with --stuck the list of its stuck
nodes, with --all that of all its nodes; with a node the page of its run. Without a
lot the lists are those of all lots. Without a desktop, with --print and with -o json
or -o yaml it prints alone.`,
		Args:              takes(0, argMaybeLot, argMaybeNode),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			page, err := a.page(cmd.Context(), args, o)
			if err != nil {
				return err
			}
			if a.structured() {
				return a.encode(uiFacts{URL: page})
			}
			if _, err := fmt.Fprintln(a.stdout, page); err != nil || o.print {
				return err
			}
			return a.browse(cmd.Context(), page)
		},
	}
	cmd.Flags().BoolVar(&o.stuck, "stuck", false, "the list of the stuck nodes")
	cmd.Flags().BoolVar(&o.all, "all", false, "the list of all nodes")
	cmd.Flags().BoolVar(&o.print, "print", false, "print the address and open nothing")
	cmd.MarkFlagsMutuallyExclusive("stuck", "all")
	return cmd
}

type uiFlags struct{ stuck, all, print bool }

// uiFacts is the answer to programs.
type uiFacts struct {
	URL string `json:"url"`
}

// page is the address of what a person wants to see.
func (a *app) page(ctx context.Context, args []string, o uiFlags) (string, error) {
	if err := a.checkWebUI(); err != nil {
		return "", err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	base := strings.TrimRight(a.webUIOf(c.Address), "/")
	if base == "" {
		return "", refuse("give --web-ui or IRONLOT_WEB_UI", "nobody has said where the Web UI of the Temporal at %s is", c.Address)
	}
	base += "/namespaces/" + url.PathEscape(c.Namespace) + "/workflows"
	if len(args) == 0 {
		return base + filter("", o.all), nil
	}
	// A name that was mistyped is no list without stuck nodes.
	l, err := track.New(c.Client, args[0]).Look(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case len(args) == 2 && (o.stuck || o.all):
		return "", refuse("leave out the node, or the flag", "--stuck and --all are lists of a lot's nodes")
	case len(args) == 1 && (o.stuck || o.all):
		return base + filter(l.Name, o.all), nil
	case len(args) == 1:
		return base + "/" + url.PathEscape(run.LotID(l.Name)) + "/" + l.RunID + "/user-metadata", nil
	}
	n, err := pick(l, args[1])
	if err != nil {
		return "", err
	}
	return nodePage(base, n)
}

// webUIGiven is the Web UI's address that the person has given, if any, and by
// what.
func (a *app) webUIGiven() (given, by string) {
	if a.webUI != "" {
		return a.webUI, "--web-ui"
	}
	const variable = "IRONLOT_WEB_UI"
	given, _ = a.env.LookupEnv(variable)
	return given, variable
}

// checkWebUI refuses what is no web address: the desktop, to which it is handed,
// opens anything.
func (a *app) checkWebUI() error {
	given, by := a.webUIGiven()
	if given == "" {
		return nil
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return refuse("give one such as http://127.0.0.1:8233", "%s %q is no http or https address", by, given)
	}
	return nil
}

// filter is the list's filter: a lot's nodes (all lots when it is empty), the
// stuck ones unless all are wanted.
func filter(lot string, all bool) string {
	terms := []string{fmt.Sprintf("WorkflowType = %q", run.WorkflowNode)}
	if lot != "" {
		terms = append(terms, fmt.Sprintf("%s = %q", run.AttrLot, lot))
	}
	if !all {
		terms = append(terms, fmt.Sprintf("%s = %q", run.AttrState, run.Stuck))
	}
	return "?query=" + url.QueryEscape(strings.Join(terms, " AND "))
}

// nodePage is the page of the run that the lot has started for a node, which
// tells how it stands.
func nodePage(base string, n track.Node) (string, error) {
	if n.RunID == "" {
		return "", refuse(fmt.Sprintf("look at its lot with `starter ui %s`", n.Node.Lot), "node %s is %s: it has no run to be shown", n.Node.Name, n.State)
	}
	return base + "/" + url.PathEscape(n.WorkflowID) + "/" + n.RunID + "/user-metadata", nil
}

// browse opens an address on the person's desktop, if there is one.
func (a *app) browse(ctx context.Context, page string) error {
	desktop := false
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY"} {
		value, _ := a.env.LookupEnv(name)
		desktop = desktop || value != ""
	}
	opener, missing := exec.LookPath("xdg-open")
	if !desktop || missing != nil {
		return nil //nolint:nilerr // no opener is no fault: the address is printed
	}
	cmd := exec.CommandContext(ctx, opener, page)
	cmd.Env = a.env.Environ()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the browser cannot be opened by %s (open the address yourself): %w", opener, err)
	}
	return nil
}
