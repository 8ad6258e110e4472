package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/near"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// steerTimeout is how long a worker may take to answer a person's wish.
const steerTimeout = 20 * time.Second

// reasonHelp is the help of every --reason.
const reasonHelp = "why, for those who read the history later: no secret belongs in it"

// steer sends a wish to the run that the lot has started for a node, never to
// another lot's on the same server, and waits until the run has taken it.
func steer(ctx context.Context, c client.Client, l track.Lot, n track.Node, update string, request any) error {
	if err := steerable(l, n, update); err != nil {
		return err
	}
	w := wish{runID: n.RunID, update: update, whose: "node " + n.Node.Name, remedy: func() string { return nodeRemedy(l, n, update) }}
	return w.send(ctx, c, n.WorkflowID, request)
}

// wish is what a person asks of a workflow.
type wish struct {
	runID  string // that may take it; empty: the latest of the workflow
	update string
	whose  string        // node or lot
	remedy func() string // when it is refused
}

// send sends the wish and waits until the workflow has taken it.
func (w wish) send(ctx context.Context, c client.Client, workflowID string, request any) error {
	wait, cancel := context.WithTimeout(ctx, steerTimeout)
	defer cancel()
	handle, err := c.UpdateWorkflow(wait, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, RunID: w.runID, UpdateName: w.update, Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(wait, nil)
	}
	return w.answer(wait, err)
}

// answer says why a wish was not taken.
func (w wish) answer(wait context.Context, err error) error {
	var refused *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refuse(w.remedy(), "%s refused: %s", w.update, refused.Message())
	case errors.As(err, &gone):
		return refuse(w.remedy(), "%s refused: no run of %s is open", w.update, w.whose)
	case errors.Is(wait.Err(), context.DeadlineExceeded):
		return &exitError{exitFailed, fmt.Errorf("no worker took the %s of %s within %s; start a worker and ask again", w.update, w.whose, steerTimeout)}
	default:
		return fmt.Errorf("the %s of %s failed: %w", w.update, w.whose, err)
	}
}

// pick finds a node of a lot by its name.
func pick(l track.Lot, name string) (track.Node, error) {
	for _, n := range l.Nodes {
		if n.Node.Name == name {
			return n, nil
		}
	}
	var known []string
	for _, n := range l.Nodes {
		known = append(known, n.Node.Name)
	}
	return track.Node{}, refuse(near.OneOf(name, known), "lot %s has no node %q", l.Name, name)
}

// names lists nodes for a sentence.
func names(nodes []track.Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Node.Name)
	}
	return clip.Names(all)
}

// done is what a command answers to programs.
type done struct {
	Lot       string `json:"lot"`
	Node      string `json:"node,omitempty"`
	Done      string `json:"done"` // the wish that was taken
	Simulated bool   `json:"simulated,omitempty"`
}

// said reports a wish that was taken.
func (a *app) said(d done, text string) error {
	if a.structured() {
		return a.encode(d)
	}
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}
