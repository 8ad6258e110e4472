package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// listed is how many lots `status` shows.
const listed = 50

func (a *app) statusCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "status [LOT [NODE]]",
		Short: "Show the lots, a lot's nodes, or all about a node",
		Long: `Without arguments the lots that Temporal remembers, the newest first. With a
lot its nodes and the time that each spent in each phase. With a node its
facts and its story. The exit code tells how the lot or node stands.`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if follow && len(args) != 1 {
				return refuse("name the lot", "--follow needs one lot")
			}
			return a.status(cmd.Context(), args, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow the lot until every node is Ready or needs a person")
	return cmd
}

func (a *app) status(ctx context.Context, args []string, follow bool) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if len(args) == 0 {
		return a.listLots(ctx, c.Client)
	}
	tracker := track.New(c.Client, args[0])
	if follow {
		return a.follow(ctx, tracker, args[0], c.Address)
	}
	l, err := tracker.Look(ctx)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return a.result(l, c.Address)
	}
	n, err := pick(l, args[1])
	if err != nil {
		return err
	}
	l.Nodes = []track.Node{n}
	if a.json() {
		err = json.NewEncoder(a.stdout).Encode(n)
	} else {
		_, err = fmt.Fprint(a.stdout, show.Detail(l, n, time.Now()))
	}
	if err != nil {
		return err
	}
	return outcome(l)
}

// listLots shows the lots that Temporal remembers.
func (a *app) listLots(ctx context.Context, c client.Client) error {
	lots, err := track.Lots(ctx, c, listed)
	if err != nil {
		return err
	}
	if a.json() {
		for _, l := range lots {
			if err := json.NewEncoder(a.stdout).Encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	if len(lots) == 0 {
		_, err = fmt.Fprintln(a.stdout, "no lots yet; `starter provision --batch lot.yaml` starts one")
		return err
	}
	rows := [][]string{{"LOT", "STARTED", "WORKFLOW"}}
	for _, l := range lots {
		rows = append(rows, []string{l.Lot, l.Started.UTC().Format(time.RFC3339), l.Result})
	}
	_, err = fmt.Fprint(a.stdout, show.Table(rows))
	return err
}
