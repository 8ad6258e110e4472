package workflows

import (
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// checkLimit bounds the check of a part of a lot. A node that answers nothing
// at all takes seconds, and several are looked at side by side.
const checkLimit = 10 * time.Minute

// CheckLot runs preflight for every node of a lot, tells what a run would do,
// and touches no server. It holds none either: runs may go on meanwhile.
func CheckLot(ctx workflow.Context, in run.LotInput) (run.LotCheck, error) {
	checked := run.LotCheck{Lot: in.Lot}
	nodes := in.Whole()
	parts := run.CheckParts(len(nodes))
	results := make([][]run.NodeCheck, len(parts))
	waiting := workflow.NewWaitGroup(ctx)
	for i, part := range parts {
		waiting.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer waiting.Done()
			results[i] = checkPart(ctx, i, part, run.LotInput{Lot: in.Lot, Nodes: nodes[part.From:part.To]})
		})
	}
	waiting.Wait(ctx)
	for _, result := range results {
		checked.Nodes = append(checked.Nodes, result...)
	}
	return checked, ctx.Err()
}

func checkPart(ctx workflow.Context, i int, part run.Part, in run.LotInput) []run.NodeCheck {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             strconv.Itoa(i),
		TaskQueue:              run.ProviderTaskQueue,
		StartToCloseTimeout:    checkLimit + run.AttemptGrace,
		ScheduleToCloseTimeout: 2 * checkLimit,
		HeartbeatTimeout:       run.HeartbeatTimeout,
		Summary:                clip.End(fmt.Sprintf("nodes %d to %d: check everything, touch nothing", part.From+1, part.To), maxSummary),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second, MaximumAttempts: 5,
			NonRetryableErrorTypes: []string{string(fault.NeedsOperator), string(fault.RescueLost)},
		},
	})
	var checks []run.NodeCheck
	err := workflow.ExecuteActivity(ctx, run.ActivityCheck, in.Share()).Get(ctx, &checks)
	if err == nil {
		return checks
	}
	for _, n := range in.Nodes {
		problem := problemOf(n.Node, run.Preflight, err)
		problem.Erased = run.Facts{}.Erased(run.Preflight)
		checks = append(checks, run.NodeCheck{Name: n.Node.Name, Problem: &problem})
	}
	return checks
}
