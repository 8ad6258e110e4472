package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// listed is how many lots are shown unless somebody wants more.
const listed = 50

func (a *app) lotsCommand() *cobra.Command {
	limit := listed
	cmd := &cobra.Command{
		Use:   "lots",
		Short: "List the lots: how many nodes are in which state",
		Long: `Lists the lots that Temporal remembers, the newest first: how each stands, how
many of its nodes are in which state, why the first stuck one is stuck and, where
a worker answers, why others wait. A state with a * may hold no longer: a run of
another lot has, or had, servers of the lot since. A lot that was started again
is listed once for each time. It needs no worker.`,
		Args: takes(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return a.listLots(cmd.Context(), c.Client, limit)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", listed, "how many to list")
	freeText(cmd, "limit")
	return cmd
}

// listLots shows the lots that Temporal remembers.
func (a *app) listLots(ctx context.Context, c client.Client, limit int) error {
	if limit < 1 {
		return refuse("give --limit 1 or more", "a list of %d lots says nothing", limit)
	}
	lots, err := track.Lots(ctx, c, limit)
	if err != nil {
		return err
	}
	for i := range lots {
		if s := lots[i].Stuck; s != nil {
			s.Reason = stuckReason(ctx, c, *s)
		}
	}
	if a.structured() {
		for _, l := range lots {
			if err := a.encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	text := "no lots yet; `starter provision --batch lot.yaml` starts one\n"
	if len(lots) > 0 {
		text = show.Lots(lots, time.Now(), a.output == outputWide, a.width())
	}
	_, err = fmt.Fprint(a.stdout, text)
	return err
}

// stuckReason reads from its history why a node is stuck, which needs no
// worker. A reason that cannot be read is left out: the list still stands.
func stuckReason(ctx context.Context, c client.Client, n track.StuckNode) string {
	h, err := history.Fetch(ctx, c, n.WorkflowID, n.RunID)
	if err != nil {
		return ""
	}
	r, err := history.Read(n.WorkflowID, h, time.Now())
	if err != nil || r.Problem == nil {
		return ""
	}
	return r.Problem.Message
}
