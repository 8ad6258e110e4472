package track

import (
	"context"
	"fmt"
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
	// Newer is a later run on the same server that did not end Ready (or not
	// yet): what is told here may hold no longer.
	Newer     *NewerRun `json:"newer,omitempty"`
	Simulated bool      `json:"simulated,omitempty"`
}

// NewerRun is a later run on a server.
type NewerRun struct {
	Lot   string    `json:"lot"`
	State run.State `json:"state"`
	RunID string    `json:"runId"`
}

// Inventory lists the servers that were provisioned, of one lot or, with an
// empty name, of all that Temporal remembers: for each server its latest run
// that ended Ready. It needs no worker.
func Inventory(ctx context.Context, c client.Client, lot string) ([]Item, error) {
	type found struct {
		ready nodeRun
		newer *NewerRun
	}
	servers := map[string]*found{}
	var order []string
	err := nodeRuns(ctx, c, time.Time{}, func(r nodeRun) {
		f := servers[r.workflowID]
		if f == nil {
			f = &found{}
			servers[r.workflowID] = f
			order = append(order, r.workflowID)
		}
		switch {
		case f.ready.runID != "": // an older run
		case r.state == run.Ready:
			f.ready = r
		case f.newer == nil:
			f.newer = &NewerRun{Lot: r.lot, State: r.state, RunID: r.runID}
		}
	})
	if err != nil {
		return nil, err
	}
	var items []Item
	for _, id := range order {
		if f := servers[id]; f.ready.runID != "" && (lot == "" || f.ready.lot == lot) {
			items = append(items, Item{Lot: f.ready.lot, WorkflowID: id, RunID: f.ready.runID, Newer: f.newer})
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for i := range items {
		g.Go(func() error { return items[i].fill(ctx, c) })
	}
	return items, g.Wait()
}

// fill reads what the run has proved from its result.
func (i *Item) fill(ctx context.Context, c client.Client) error {
	var s run.Status
	if err := c.GetWorkflow(ctx, i.WorkflowID, i.RunID).Get(ctx, &s); err != nil {
		return fmt.Errorf("the result of run %s of %s cannot be read: %w", i.RunID, i.WorkflowID, err)
	}
	f := s.Facts
	i.Node, i.Provider, i.Zone, i.Simulated = s.Node.Name, s.Node.Provider, s.Node.Zone, s.Node.Lab
	i.Server, i.ServerID, i.Address = s.Node.ServerName, s.Node.ServerID, f.Address
	i.SystemDisk, i.SecondaryDisks, i.ImageURL, i.Ready = f.System, f.Secondary, s.Node.Image.URL, s.Ended
	if f.Staged != nil {
		i.ImageSHA256, i.ImageDataSHA256 = f.Staged.RawSHA256, f.Staged.DataSHA256
	}
	if f.Applied != nil {
		i.ConfigSHA256 = f.Applied.ConfigSHA256
	}
	if f.Ready != nil {
		i.TalosVersion, i.Ready = f.Ready.TalosVersion, f.Ready.At
	}
	return nil
}
