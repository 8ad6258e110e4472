package workflows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ironlot/ironlot/internal/run"
)

// maxLotInput bounds a lot's input, bytes: Temporal takes 2 MiB, and what is
// noted of the nodes' progress goes with it.
const maxLotInput = 3 << 19

// listen sets up the query, the updates and the plain signals of a lot.
func (l *lot) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, run.QueryStatus, func() (run.LotStatus, error) { return l.status, nil }); err != nil {
		return err
	}
	for _, err := range []error{
		onUpdate(ctx, run.UpdatePause, "start no further node", l.checkPause, l.pause),
		onUpdate(ctx, run.UpdateResume, "start nodes again", l.checkResume, l.resume),
		onUpdate(ctx, run.UpdateAdd, "add nodes to the lot", l.checkAdd, l.add),
		onUpdate(ctx, run.UpdateAbort, "end a node that is not started yet", l.checkAbort, l.abort),
		workflow.SetUpdateHandlerWithOptions(ctx, run.UpdateImage,
			func(_ workflow.Context, image run.LotImage) (run.LotImage, error) {
				l.status.Image = &image
				return image, nil
			},
			workflow.UpdateHandlerOptions{Validator: l.checkImage, Description: "set the lot's image, by the first node that stages it"}),
	} {
		if err != nil {
			return err
		}
	}
	workflow.Go(ctx, func(ctx workflow.Context) { onSignal(ctx, run.SignalNodeState, l.takeReport) })
	workflow.Go(ctx, func(ctx workflow.Context) { onSignal(ctx, run.UpdatePause, checked(l.checkPause, l.pause)) })
	workflow.Go(ctx, func(ctx workflow.Context) { onSignal(ctx, run.UpdateResume, checked(l.checkResume, l.resume)) })
	return nil
}

// onUpdate takes a person's wish once it has been checked.
func onUpdate[T any](ctx workflow.Context, name, description string, check func(T) error, take func(workflow.Context, T)) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, name,
		func(ctx workflow.Context, wish T) error { take(ctx, wish); return nil },
		workflow.UpdateHandlerOptions{Validator: check, Description: description})
}

// onSignal takes signals as they come.
func onSignal[T any](ctx workflow.Context, name string, take func(workflow.Context, T)) {
	for {
		var sent T
		workflow.GetSignalChannel(ctx, name).Receive(ctx, &sent)
		take(ctx, sent)
	}
}

// checked drops a signal that makes no sense: nobody waits for an answer.
func checked[T any](check func(T) error, take func(workflow.Context, T)) func(workflow.Context, T) {
	return func(ctx workflow.Context, wish T) {
		if err := check(wish); err != nil {
			workflow.GetLogger(ctx).Warn("signal refused", "error", err)
			return
		}
		take(ctx, wish)
	}
}

// takeReport takes a node's own word on how it stands.
func (l *lot) takeReport(_ workflow.Context, r run.NodeState) {
	i, ok := l.index[r.Name]
	// A run that an earlier lot has left may be at work for a node of that name, on
	// another server.
	if ok && (r.WorkflowID == "" || r.WorkflowID == l.status.Nodes[i].WorkflowID) {
		l.set(i, r.State, r.Reason)
	}
}

func (l *lot) checkPause(run.PauseRequest) error {
	if l.status.Paused != nil {
		return refuse("lot %s is paused already: %s", l.in.Lot, l.status.Paused.Reason)
	}
	return nil
}

func (l *lot) pause(ctx workflow.Context, r run.PauseRequest) {
	l.status.Paused = &run.Pause{Reason: cmp.Or(r.Reason, run.PausedByPerson), By: r.By, At: workflow.Now(ctx)}
	l.changed = true
}

func (l *lot) checkResume(run.ResumeRequest) error {
	if l.status.Paused == nil {
		return refuse("lot %s is not paused", l.in.Lot)
	}
	return nil
}

// resume starts nodes again, with as many stuck ones as there are now.
func (l *lot) resume(workflow.Context, run.ResumeRequest) {
	l.waived = l.rollout().waive()
	l.status.Paused, l.changed = nil, true
}

// checkAbort takes only a node that has no run yet, which the node's own
// workflow could end.
func (l *lot) checkAbort(r run.AbortRequest) error {
	i, ok := l.index[r.Node]
	if !ok {
		return refuse("lot %s has no node %q", l.in.Lot, r.Node)
	}
	if state := l.status.Nodes[i].State; state != run.Queued {
		return refuse("node %s is %s by now: abort its run, workflow %s", r.Node, state, l.status.Nodes[i].WorkflowID)
	}
	return nil
}

// abort ends a node before it is started.
func (l *lot) abort(_ workflow.Context, r run.AbortRequest) {
	reason := "aborted by " + run.Who(r.By) + " before it was started"
	if r.Reason != "" {
		reason += ": " + r.Reason
	}
	l.set(l.index[r.Node], run.Aborted, reason)
}

// checkAdd refuses nodes or servers that the lot has already, and more than
// Temporal would take.
func (l *lot) checkAdd(more run.LotInput) error {
	if len(more.Nodes) == 0 || more.Lot != l.in.Lot {
		return refuse("what is to be added to lot %s are %d nodes of lot %q: give nodes of this lot", l.in.Lot, len(more.Nodes), more.Lot)
	}
	servers := serversOf(l.in.Whole())
	for _, n := range more.Whole() {
		if _, ok := l.index[n.Node.Name]; ok {
			return refuse("lot %s has a node %s already: give the new one another name", l.in.Lot, n.Node.Name)
		}
		own := serversOf([]run.NodeInput{n})
		for server := range own {
			if holder, ok := servers[server]; ok {
				return refuse("server %s of node %s is that of node %s: give each node a server of its own", n.Node.ServerName, n.Node.Name, holder)
			}
		}
		maps.Copy(servers, own)
	}
	data, err := json.Marshal(l.joined(more))
	if err != nil {
		return refuse("the nodes cannot be added to lot %s: %v", l.in.Lot, err)
	}
	if len(data) > maxLotInput {
		return refuse("lot %s would take %d KiB with these nodes, and %d are allowed: make another lot of them", l.in.Lot, len(data)>>10, maxLotInput>>10)
	}
	return nil
}

// serversOf tells which node has a server, by the server's ID and by its name: a
// name that two nodes share would not tell the wrong server from the right.
func serversOf(nodes []run.NodeInput) map[string]string {
	servers := map[string]string{}
	for _, n := range nodes {
		servers[strings.ToLower(n.Node.ServerID)] = n.Node.Name
		if n.Node.ServerName != "" {
			servers[strings.ToLower(n.Node.ServerName)] = n.Node.Name
		}
	}
	return servers
}

// add takes further nodes. The workflow continues as new with them, so that
// its first event always holds the whole lot.
func (l *lot) add(_ workflow.Context, more run.LotInput) {
	l.in = l.joined(more)
	for _, n := range more.Whole() {
		l.index[n.Node.Name] = len(l.status.Nodes)
		l.status.Nodes = append(l.status.Nodes, run.NodeState{Name: n.Node.Name, WorkflowID: n.Node.ID(), State: run.Queued})
	}
	l.status.Others = len(l.in.Others)
	l.grown, l.changed = true, true
}

// joined is the lot's input with further nodes.
func (l *lot) joined(more run.LotInput) run.LotInput {
	in := l.in
	in.Nodes, in.Common, in.Shared = append(in.Whole(), more.Whole()...), run.Node{}, nil
	in.Others = in.LeftAlone()
	return in.Share()
}

// checkImage refuses every image but the first one: see run.LotImage.
func (l *lot) checkImage(image run.LotImage) error {
	if known := l.status.Image; known != nil {
		return temporal.NewApplicationError(fmt.Sprintf("the image of lot %s is set", l.in.Lot), run.ImageKnown, *known)
	}
	if image.RawSHA256 == "" {
		return refuse("an image without a digest cannot be that of lot %s", l.in.Lot)
	}
	return nil
}
