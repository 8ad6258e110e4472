package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// CheckLot runs preflight for every node of a lot, tells what a run would do,
// and touches no server. It holds none either: runs may go on meanwhile.
func CheckLot(ctx workflow.Context, in run.LotInput) (run.LotCheck, error) {
	checked := run.LotCheck{Lot: in.Lot, Nodes: make([]run.NodeCheck, len(in.Nodes))}
	waiting := workflow.NewWaitGroup(ctx)
	for i := range in.Nodes {
		waiting.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer waiting.Done()
			checked.Nodes[i] = checkNode(ctx, in.Node(i))
		})
	}
	waiting.Wait(ctx)
	return checked, ctx.Err()
}

func checkNode(ctx workflow.Context, in run.NodeInput) run.NodeCheck {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              run.ProviderTaskQueue,
		StartToCloseTimeout:    2*time.Minute + run.AttemptGrace,
		ScheduleToCloseTimeout: 20 * time.Minute,
		HeartbeatTimeout:       run.HeartbeatTimeout,
		Summary:                clip.End(in.Node.Name+": check everything, touch nothing", maxSummary),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second, MaximumAttempts: 5,
			NonRetryableErrorTypes: []string{string(fault.NeedsOperator), string(fault.RescueLost)},
		},
	})
	var out run.PhaseOutput
	err := workflow.ExecuteActivity(ctx, run.ActivityCheck, run.PhaseInput{Node: in.Node, Sealed: &in.Sealed}).Get(ctx, &out)
	check := run.NodeCheck{Name: in.Node.Name, Facts: out.Facts}
	if err != nil {
		problem := problemOf(run.Preflight, err)
		problem.Erased = check.Facts.Erased(run.Preflight)
		check.Problem = &problem
	}
	return check
}
