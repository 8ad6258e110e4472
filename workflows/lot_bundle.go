package workflows

import (
	"context"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/pause"
)

const (
	// bundleFrom is how many nodes at once have to be starting for the lot to
	// take the news of their starts in bundles.
	bundleFrom = 10
	// bundleFor is how long it gathers news. Whoever steers the lot waits that
	// much longer, so it is short.
	bundleFor = 2 * time.Second
)

// bundle keeps the workflow task open for a moment while many nodes start.
// Temporal tells of each start by itself, and three events go with every
// workflow task; what comes in while one is open comes with the next one.
func (l *lot) bundle(ctx workflow.Context) error {
	if l.starting < bundleFrom {
		return nil
	}
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: time.Minute})
	// That it was cut short, by a worker that stops, does no harm.
	_ = workflow.ExecuteLocalActivity(ctx, gather, bundleFor).Get(ctx, nil)
	return ctx.Err()
}

// gather lets time pass.
func gather(ctx context.Context, d time.Duration) error {
	return pause.For(ctx, d)
}
