package track

import (
	"context"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/ironlot/ironlot/internal/run"
)

// tell lets each lot say itself what a list of runs does not show: whether it
// is paused, and what became of nodes that have no run. An open lot needs a
// worker for that; what nobody tells is left out, the list still stands.
func tell(ctx context.Context, c client.Client, lots []*Summary) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(lookers)
	for _, s := range lots {
		if !s.open && len(s.seen) >= s.Nodes {
			continue
		}
		g.Go(func() error {
			if status, err := ownWord(ctx, c, s); err == nil {
				s.told = status
			}
			return nil
		})
	}
	_ = g.Wait()
}

// Ask lets a lot that is open say itself how its nodes stand, which needs a
// worker and is one question, however large the lot is.
func Ask(ctx context.Context, c client.Client, s Summary) (run.LotStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return ownWord(ctx, c, &s)
}

// ownWord is a lot's result, or its answer while it is open.
func ownWord(ctx context.Context, c client.Client, s *Summary) (status run.LotStatus, err error) {
	if !s.open {
		err = c.GetWorkflow(ctx, s.WorkflowID, s.RunID).Get(ctx, &status)
		return status, err
	}
	answer, err := c.QueryWorkflow(ctx, s.WorkflowID, s.RunID, run.QueryStatus)
	if err == nil {
		err = answer.Get(&status)
	}
	return status, err
}
