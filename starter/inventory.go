package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

func (a *app) inventoryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inventory [LOT]",
		Short: "List what was provisioned: servers, disks, images, by which run",
		Long: `Lists the servers that became Ready nodes, of one lot or of all: name, disks by
serial, the digest of the image that was written, Talos's version, when, and by
which run. IMAGE DATA is equal for equal raw images; -o json has the image's
SHA-256 too, where it was computed. A server that was provisioned again is
listed with the run that wrote its disk last; CONFIRMED (-o wide) is a later one
that left it alone, NEWER RUN one that did not end Ready, for which the node has a
*. Servers of the lot that another lot has installed anew are named below. It
reads the results that Temporal keeps, for as long as it keeps them, and needs no
worker.

  starter inventory -o wide
  starter inventory rack-1 -o json | jq -r '[.server, .systemDisk.serial] | @tsv'`,
		Args:              takes(0, argMaybeLot),
		ValidArgsFunction: a.completeLot,
		RunE: func(cmd *cobra.Command, args []string) error {
			lot := ""
			if len(args) == 1 {
				lot = args[0]
			}
			return a.inventory(cmd.Context(), lot)
		},
	}
}

func (a *app) inventory(ctx context.Context, lot string) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	listed, err := track.Inventory(ctx, c.Client, lot)
	if err != nil {
		return err
	}
	if lot != "" && len(listed.Items)+len(listed.Elsewhere) == 0 {
		// A name that was mistyped is no empty inventory.
		if _, err := track.New(c.Client, lot).Look(ctx); err != nil {
			return err
		}
	}
	elsewhere := show.Elsewhere(lot, listed.Elsewhere)
	if a.structured() {
		for _, i := range listed.Items {
			if err := a.encode(i); err != nil {
				return err
			}
		}
		if elsewhere != "" {
			a.tell(strings.TrimSpace(elsewhere))
		}
		return nil
	}
	text := ""
	switch {
	case len(listed.Items) > 0:
		text = show.Inventory(listed.Items, a.output == outputWide, a.width())
	case elsewhere != "":
		text = fmt.Sprintf("no server is lot %s's any more\n", lot)
	default:
		text = "nothing was provisioned yet, as far as Temporal remembers\n"
	}
	_, err = fmt.Fprint(a.stdout, text, show.Wrap(elsewhere, a.width()))
	return err
}
