package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// maxRewinds bounds how often a run goes back by itself before a person has
// to look. A retry by a person starts the count again.
const maxRewinds = 5

// ProvisionNode takes one rented server to a Ready node. It ends Ready or
// Aborted; a phase that cannot go on leaves it stuck, waiting for a person.
func ProvisionNode(ctx workflow.Context, in run.NodeInput) (run.Status, error) {
	n := newNode(ctx, in)
	if err := n.listen(ctx); err != nil {
		return n.status, err
	}
	for at := 0; at < len(n.phases); {
		p := n.phases[at]
		n.enter(ctx, p)
		err := n.pass(ctx, p)
		if n.abort != nil || temporal.IsCanceledError(err) {
			return n.finishAborted(ctx, p)
		}
		if err == nil {
			at = n.after(at)
			continue
		}
		next, aborted := n.recover(ctx, p, err)
		if aborted {
			return n.finishAborted(ctx, p)
		}
		at = position(n.phases, next)
	}
	return n.finish(ctx, run.Ready)
}

// node is the state of one run.
type node struct {
	in      run.NodeInput
	sealed  run.Sealed // of the input that the run was started with
	phases  []phase
	status  run.Status
	passes  map[run.Phase]int // how often each phase was entered
	rewinds int               // since a person last stepped in
	boots   int               // how often the boot that is wanted now has not come
	skipTo  run.Phase         // where a corrected run goes on behind preflight

	retry  *run.RetryRequest // a person's wish, taken by the main loop
	abort  *run.AbortRequest
	cancel workflow.CancelFunc // cancels the phase at work
}

func newNode(ctx workflow.Context, in run.NodeInput) *node {
	now := workflow.Now(ctx)
	return &node{
		in:     in,
		sealed: in.Sealed,
		phases: table(),
		passes: map[run.Phase]int{},
		status: run.Status{Node: in.Node, State: run.Running, Started: now, Since: now},
	}
}

// enter makes a phase the current one, for everybody who looks.
func (n *node) enter(ctx workflow.Context, p phase) {
	now := workflow.Now(ctx)
	n.status.State, n.status.Phase, n.status.Since, n.status.Problem = run.Running, p.name, now, nil
	n.status.Notice = ""
	n.status.Timeline = append(n.status.Timeline, run.PhaseRecord{Phase: p.name, Started: now})
	n.show(ctx)
}

// pass runs a phase's activity, with all its attempts, once.
func (n *node) pass(ctx workflow.Context, p phase) error {
	n.passes[p.name]++
	n.status.Facts.Touched = n.status.Facts.Touched || p.destroys
	in := n.input(ctx, p)
	in.Keep = p.name == run.Preflight && workflow.GetInfo(ctx).ParentWorkflowExecution != nil
	if p.name == run.Stage {
		in.LotRun = n.in.LotRun
	}
	in.TakesConfig = p.takesConfig(n.in.Node)
	if in.TakesConfig && n.in.Sealed != n.sealed {
		in.Sealed = &n.in.Sealed
	}
	actCtx, cancel := workflow.WithCancel(workflow.WithActivityOptions(ctx, p.options(n.in)))
	defer cancel()
	n.cancel = cancel
	var out run.PhaseOutput
	err := workflow.ExecuteActivity(actCtx, string(p.name), in).Get(actCtx, &out)
	n.cancel = nil

	record := &n.status.Timeline[len(n.status.Timeline)-1]
	record.Ended = workflow.Now(ctx)
	if err != nil {
		problem := problemOf(n.in.Node, p.name, err)
		record.Class, record.Error = problem.Class, problem.Message
		if temporal.IsCanceledError(err) {
			record.Error += n.why()
		}
		return err
	}
	record.Summary = out.Summary
	n.status.Facts = n.status.Facts.With(out.Facts)
	if p.boots {
		n.boots = 0
	}
	return nil
}

// input is what the activity of the current pass through a phase gets.
func (n *node) input(ctx workflow.Context, p phase) run.PhaseInput {
	return run.PhaseInput{
		Node: n.in.Node, Facts: n.status.Facts, Key: n.key(ctx, p.name),
		Run: workflow.GetInfo(ctx).OriginalRunID, Pass: len(n.status.Timeline), Boots: n.boots,
	}
}

// after is the phase behind one that has succeeded: none behind preflight
// when it has found the node Ready already.
func (n *node) after(at int) int {
	if n.status.Facts.Ready != nil {
		return len(n.phases)
	}
	if n.skipTo == "" {
		return at + 1
	}
	at = position(n.phases, n.skipTo)
	n.skipTo = ""
	return at
}

// key names a pass through a phase on the machine. It stays the same over
// all attempts and over a reset of the workflow to an earlier point.
func (n *node) key(ctx workflow.Context, p run.Phase) string {
	return fmt.Sprintf("%s-%s-%d", workflow.GetInfo(ctx).OriginalRunID, p, n.passes[p])
}

// recover decides where a failed phase leads: back, by the table, or to a
// person. It returns the phase to go on with, or that the run is aborted.
func (n *node) recover(ctx workflow.Context, p phase, err error) (next run.Phase, aborted bool) {
	problem := problemOf(n.in.Node, p.name, err)
	if problem.Class == string(fault.RescueLost) && p.rewind != "" {
		if n.mayGoBack(p) {
			n.status.Rewinds++
			n.status.Facts = n.status.Facts.Forget(p.rewind)
			return p.rewind, false
		}
		problem.Message = n.gaveUp(p) + problem.Message
	}
	problem.Erased = n.status.Facts.Erased(p.name)
	return n.stick(ctx, p, problem)
}

// mayGoBack counts a way back, and reports whether there is one left. A boot
// that does not come has a bound of its own.
func (n *node) mayGoBack(p phase) bool {
	if p.boots {
		n.boots++
		return n.boots < n.in.Node.Boot.Tries()
	}
	n.rewinds++
	return n.rewinds <= maxRewinds
}

func (n *node) gaveUp(p phase) string {
	if p.boots {
		b := n.in.Node.Boot.OrDefault()
		return fmt.Sprintf("gave up after %s and %s (stop and start): ", count.Of(b.Reboots, "reboot"), count.Of(b.PowerCycles, "power cycle"))
	}
	return fmt.Sprintf("gave up after going back %d times, the last time because ", maxRewinds)
}

// stick waits for a person.
func (n *node) stick(ctx workflow.Context, p phase, problem run.Problem) (run.Phase, bool) {
	n.status.State, n.status.Since, n.status.Problem = run.Stuck, workflow.Now(ctx), &problem
	n.retry = nil
	n.show(ctx)
	n.tellLot(ctx, run.Stuck, problem.Message)
	if err := workflow.Await(ctx, func() bool { return n.retry != nil || n.abort != nil }); err != nil || n.abort != nil {
		return "", true
	}
	next := n.resume(p.name, *n.retry)
	n.retry, n.rewinds, n.boots = nil, 0, 0
	n.tellLot(ctx, run.Running, "")
	return next, false
}

// finish ends the run once every handler has answered.
func (n *node) finish(ctx workflow.Context, state run.State) (run.Status, error) {
	now := workflow.Now(ctx)
	n.status.State, n.status.Since, n.status.Ended, n.status.Aborting = state, now, now, false
	n.show(ctx)
	err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
	n.report(ctx)
	return n.status, err
}

// problemOf reads the class and the remedy from an activity's error. Errors
// of Temporal itself (time-outs, lost workers) have used up their attempts.
func problemOf(node run.Node, p run.Phase, err error) run.Problem {
	problem := run.Problem{Phase: p, Class: string(fault.Transient)}
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	var activity *temporal.ActivityError
	switch {
	case temporal.IsCanceledError(err):
		problem.Class, problem.Message = string(fault.Aborted), "stopped"
	case errors.As(err, &app):
		problem.Message = app.Message()
		if class := fault.Class(app.Type()); class.Known() {
			problem.Class = string(class)
		}
		var details run.ErrorDetails
		if app.HasDetails() && app.Details(&details) == nil {
			problem.Remedy, problem.Tail = run.Remedy(details.Remedy, node), details.Tail
		}
	case errors.As(err, &timeout):
		problem.Message = fmt.Sprintf("no worker finished the phase %s in time (%s timeout)", p, timeout.TimeoutType())
		problem.Remedy = "check that a worker runs and reaches Temporal and the server, then retry"
	case errors.As(err, &activity) && activity.Unwrap() != nil:
		problem.Message = activity.Unwrap().Error() // without Temporal's IDs
	default:
		problem.Message = err.Error()
	}
	if problem.Class == string(fault.Transient) && problem.Remedy == "" {
		problem.Remedy = "look at the attempts in the Web UI, mend the cause, then retry"
	}
	return problem
}
