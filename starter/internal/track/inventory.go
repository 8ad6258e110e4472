package track

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/ironlot/ironlot/internal/run"
)

// Item is a server that was provisioned: what it became, when, by which run.
type Item struct {
	Node           string     `json:"node"`
	Lot            string     `json:"lot"`
	Provider       string     `json:"provider"`
	Zone           string     `json:"zone"`
	Server         string     `json:"server"`
	ServerID       string     `json:"serverId"`
	Address        string     `json:"address,omitempty"`
	SystemDisk     *run.Disk  `json:"systemDisk,omitempty"`
	SecondaryDisks []run.Disk `json:"secondaryDisks,omitempty"`
	ImageURL       string     `json:"imageUrl"`
	// ImageSHA256 is the raw image's, where the run computed it.
	ImageSHA256 string `json:"imageSha256,omitempty"`
	// ImageDataSHA256 tells raw images apart, see run.Staged.
	ImageDataSHA256 string    `json:"imageDataSha256,omitempty"`
	ConfigSHA256    string    `json:"configSha256,omitempty"`
	TalosVersion    string    `json:"talosVersion,omitempty"`
	Ready           time.Time `json:"ready"` // when the node became Ready
	WorkflowID      string    `json:"workflowId"`
	RunID           string    `json:"runId"`
	// Confirmed is the latest run that found the node Ready with its lot's
	// config and left it alone; nil: none did.
	Confirmed *Confirmation `json:"confirmed,omitempty"`
	// Newer is a later run on the same server that did not end Ready (or not
	// yet): what is told here may hold no longer.
	Newer     *NewerRun `json:"newer,omitempty"`
	Simulated bool      `json:"simulated,omitempty"`

	runs []nodeRun // the latest that ended Ready and those before it, newest first
}

// Confirmation is a run that left a Ready node alone.
type Confirmation struct {
	Lot   string    `json:"lot"`
	At    time.Time `json:"at"`
	RunID string    `json:"runId"`
}

// Listed are the servers of an inventory.
type Listed struct {
	Items []Item
	// Elsewhere are servers that the lot has made Ready too, and that another
	// lot has installed anew since: they are that one's now.
	Elsewhere []Item
}

// Inventory lists the servers that were provisioned, of one lot or, with an
// empty name, of all that Temporal remembers: for each server of which a run
// ended Ready the run that wrote its disk. A server is of the lot that wrote it
// and of the one that confirmed it last. It needs no worker.
func Inventory(ctx context.Context, c client.Client, lot string) (Listed, error) {
	items, err := readyServers(ctx, c)
	if err != nil {
		return Listed{}, err
	}
	items = slices.DeleteFunc(items, func(i *Item) bool {
		return lot != "" && !slices.ContainsFunc(i.runs, func(r nodeRun) bool { return r.lot == lot })
	})
	g, filling := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for _, i := range items {
		g.Go(func() error { return i.fill(filling, c) })
	}
	if err := g.Wait(); err != nil {
		return Listed{}, err
	}
	var found Listed
	for _, i := range items {
		switch {
		case lot == "" || i.Lot == lot || i.Confirmed != nil && i.Confirmed.Lot == lot:
			found.Items = append(found.Items, *i)
		case slices.ContainsFunc(i.runs, func(r nodeRun) bool { return r.lot == lot && r.state == run.Ready }):
			found.Elsewhere = append(found.Elsewhere, *i)
		}
	}
	return found, nil
}

// readyServers gives an item for each server of which a run ended Ready.
func readyServers(ctx context.Context, c client.Client) ([]*Item, error) {
	servers := map[string]*Item{}
	var order []*Item
	err := nodeRuns(ctx, c, time.Time{}, func(r nodeRun) {
		i := servers[r.workflowID]
		if i == nil {
			i = &Item{WorkflowID: r.workflowID}
			servers[r.workflowID] = i
			order = append(order, i)
		}
		switch {
		case len(i.runs) > 0 || r.state == run.Ready:
			i.runs = append(i.runs, r)
		case i.Newer == nil:
			i.Newer = r.newer()
		}
	})
	return slices.DeleteFunc(order, func(i *Item) bool { return len(i.runs) == 0 }), err
}

// fill reads what the runs have proved from their results.
func (i *Item) fill(ctx context.Context, c client.Client) error {
	latest := i.runs[0]
	s, err := resultOf(ctx, c, latest)
	if err != nil {
		return fmt.Errorf("the result of run %s of %s cannot be read: %w", latest.runID, i.WorkflowID, err)
	}
	i.Lot, i.RunID = latest.lot, latest.runID
	i.tell(s)
	for _, older := range i.runs[1:] {
		if i.SystemDisk != nil || s.Facts.Touched {
			break
		}
		// What cannot be read, for it was ended from outside, may have written.
		if s, err = resultOf(ctx, c, older); err != nil {
			return ctx.Err()
		}
		if s.Facts.Written != nil {
			i.wrote(older, s)
		}
	}
	return nil
}

// tell takes what the latest run that ended Ready says of the node.
func (i *Item) tell(s run.Status) {
	f := s.Facts
	i.Node, i.Provider, i.Zone, i.Simulated = s.Node.Name, s.Node.Provider, s.Node.Zone, s.Node.Lab
	i.Server, i.ServerID, i.Address = s.Node.ServerName, s.Node.ServerID, f.Address
	i.ImageURL, i.Ready = s.Node.Image.URL, s.Ended
	i.disks(f)
	if f.Applied != nil {
		i.ConfigSHA256 = f.Applied.ConfigSHA256
	}
	if f.Ready != nil {
		i.TalosVersion, i.Ready = f.Ready.TalosVersion, f.Ready.At
	}
}

// wrote takes what an older run wrote, which the latest has confirmed.
func (i *Item) wrote(older nodeRun, s run.Status) {
	i.Confirmed = &Confirmation{Lot: i.Lot, At: i.Ready, RunID: i.RunID}
	i.Lot, i.RunID, i.ImageURL = older.lot, older.runID, s.Node.Image.URL
	i.disks(s.Facts)
	if s.State == run.Ready && s.Facts.Ready != nil {
		i.Ready = s.Facts.Ready.At
	}
}

func (i *Item) disks(f run.Facts) {
	i.SystemDisk, i.SecondaryDisks = f.System, f.Secondary
	if f.Staged != nil {
		i.ImageSHA256, i.ImageDataSHA256 = f.Staged.RawSHA256, f.Staged.DataSHA256
	}
}

// resultOf is what a run ended with.
func resultOf(ctx context.Context, c client.Client, r nodeRun) (run.Status, error) {
	var s run.Status
	err := c.GetWorkflow(ctx, r.workflowID, r.runID).Get(ctx, &s)
	return s, err
}
