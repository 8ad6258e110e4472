package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// finishAborted stops what the run left on the machine and ends it. A run
// cancelled through Temporal ends as cancelled, one aborted by a person as
// completed with the state aborted.
func (n *node) finishAborted(ctx workflow.Context, p phase) (run.Status, error) {
	cancelled := ctx.Err()
	n.status.Aborting = true
	free, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()

	problem := run.Problem{
		Phase:   p.name,
		Class:   string(fault.Aborted),
		Message: "aborted in " + string(p.name) + n.why(),
		Erased:  n.status.Facts.Erased(p.name),
		Left:    run.LeftAt(p.name),
	}
	if p.remoteJob && n.status.Facts.Rescue != nil {
		if err := n.stopJob(free, p); err != nil {
			problem.Message += "; the job on the machine could not be stopped and may still run"
			problem.Left, problem.Tail = run.LeftUnknown, problemOf(n.in.Node, p.name, err).Message
		}
	}
	problem.Remedy = problem.Left.Remedy(n.in.Node)
	n.status.Problem = &problem
	status, err := n.finish(free, run.Aborted)
	if err == nil {
		err = cancelled
	}
	return status, err
}

func (n *node) why() string {
	switch {
	case n.abort == nil:
		return " by cancelling the workflow"
	case n.abort.Reason != "":
		return " by " + run.Who(n.abort.By) + ": " + n.abort.Reason
	default:
		return " by " + run.Who(n.abort.By)
	}
}

// stopJob stops the phase's job on the machine.
func (n *node) stopJob(ctx workflow.Context, p phase) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           run.TaskQueue,
		StartToCloseTimeout: 2 * time.Minute,
		HeartbeatTimeout:    run.HeartbeatTimeout,
		Summary:             clip.End(n.in.Node.Name+": stop the job on the machine", maxSummary),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 6,
			NonRetryableErrorTypes: []string{string(fault.NeedsOperator)},
		},
	})
	return workflow.ExecuteActivity(ctx, run.ActivityStopJob, n.input(ctx, p)).Get(ctx, nil)
}
