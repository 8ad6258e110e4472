package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/run"
)

// listen sets up the query, the updates and the plain signals.
func (n *node) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, run.QueryStatus, func() (run.Status, error) { return n.status, nil }); err != nil {
		return err
	}
	err := workflow.SetUpdateHandlerWithOptions(ctx, run.UpdateRetry,
		func(_ workflow.Context, r run.RetryRequest) error { n.takeRetry(r); return nil },
		workflow.UpdateHandlerOptions{Validator: n.checkRetry, Description: "go on with a stuck run, optionally from an earlier phase"})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, run.UpdateAbort,
		func(_ workflow.Context, r run.AbortRequest) error { n.takeAbort(r); return nil },
		workflow.UpdateHandlerOptions{Validator: n.checkAbort, Description: "stop the run and leave the server as it is"})
	if err != nil {
		return err
	}
	workflow.Go(ctx, func(ctx workflow.Context) { listenTo(ctx, n, run.UpdateRetry, n.checkRetry, n.takeRetry) })
	workflow.Go(ctx, func(ctx workflow.Context) { listenTo(ctx, n, run.UpdateAbort, n.checkAbort, n.takeAbort) })
	return nil
}

// listenTo takes the same wishes from `temporal workflow signal` and the Web
// UI. A signal cannot be refused: one that makes no sense is dropped, and the
// run's page says why.
func listenTo[T any](ctx workflow.Context, n *node, name string, check func(T) error, take func(T)) {
	wishes := workflow.GetSignalChannel(ctx, name)
	for {
		var wish T
		wishes.Receive(ctx, &wish)
		err := check(wish)
		if err == nil {
			take(wish)
			continue
		}
		workflow.GetLogger(ctx).Warn("signal refused", "signal", name, "error", err)
		n.status.Notice = fmt.Sprintf("the signal %s was refused: %s", name, messageOf(err))
		n.show(ctx)
	}
}

// messageOf is an error's text without what Temporal adds.
func messageOf(err error) string {
	if app := new(temporal.ApplicationError); errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}

func (n *node) takeRetry(r run.RetryRequest) { n.retry = &r }

func (n *node) takeAbort(r run.AbortRequest) {
	n.abort, n.status.Aborting = &r, true
	if n.cancel != nil {
		n.cancel()
	}
}

// checkRetry refuses a retry that makes no sense, before it is recorded.
func (n *node) checkRetry(r run.RetryRequest) error {
	if n.status.State != run.Stuck || n.retry != nil {
		return refuse("node %s is %s in %s, not stuck: there is nothing to retry", n.in.Node.Name, n.status.State, n.status.Phase)
	}
	if r.Input != nil {
		return n.checkInput(r)
	}
	if r.From == "" {
		return nil
	}
	if position(n.phases, r.From) < 0 {
		return refuse("there is no phase %q: the phases are %v", r.From, run.Phases())
	}
	if n.status.Phase.Before(r.From) {
		return refuse("node %s is stuck in %s and has not proved what %s builds on: retry from %s or an earlier phase",
			n.in.Node.Name, n.status.Phase, r.From, n.status.Phase)
	}
	inRescue := !r.From.Before(run.WaitSSH) && !run.SysrqReset.Before(r.From)
	if inRescue && n.status.Facts.Reset != nil {
		return refuse("%s needs the rescue boot, which node %s has left: retry from %s",
			r.From, n.in.Node.Name, run.RebootRescue)
	}
	return nil
}

func (n *node) checkAbort(run.AbortRequest) error {
	if n.abort != nil || n.status.State.Final() {
		return refuse("node %s is already being aborted or has ended", n.in.Node.Name)
	}
	return nil
}

func refuse(format string, args ...any) error {
	return temporal.NewApplicationError(fmt.Sprintf(format, args...), "Refused")
}

// tellLot reports to the lot's workflow, if the run has one. A lot that has
// ended needs no report.
func (n *node) tellLot(ctx workflow.Context, state run.State, reason string) {
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil {
		return
	}
	report := run.NodeState{Name: n.in.Node.Name, WorkflowID: n.in.Node.ID(), State: state, Reason: reason}
	if err := workflow.SignalExternalWorkflow(ctx, parent.ID, "", run.SignalNodeState, report).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Info("the lot's workflow takes no reports any more", "lot", n.in.Node.Lot, "error", err)
	}
}

// report tells the run's end to a lot whose workflow has continued as new.
func (n *node) report(ctx workflow.Context) {
	if !workflow.GetSignalChannel(ctx, run.SignalContinued).ReceiveAsync(nil) {
		return
	}
	reason := ""
	if n.status.Problem != nil {
		reason = n.status.Problem.Message
	}
	n.tellLot(ctx, n.status.State, reason)
}
