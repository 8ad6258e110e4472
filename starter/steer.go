package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// steerTimeout is how long a worker may take to answer a person's wish.
const steerTimeout = 20 * time.Second

// steer sends a wish to the run that the lot has started for a node, never to
// another lot's on the same server, and waits until the run has taken it.
func steer(ctx context.Context, c client.Client, n track.Node, update string, request any) error {
	if n.State == run.Queued || n.State == run.Refused {
		return refuse("wait for it, or end the lot's other runs first", "node %s is %s: it has no run that could be steered", n.Node.Name, n.State)
	}
	wait, cancel := context.WithTimeout(ctx, steerTimeout)
	defer cancel()
	handle, err := c.UpdateWorkflow(wait, client.UpdateWorkflowOptions{
		WorkflowID: n.WorkflowID, RunID: n.RunID, UpdateName: update, Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(wait, nil)
	}
	return steerError(wait, "node "+n.Node.Name, update, err)
}

// steerError says why a wish was not taken.
func steerError(wait context.Context, whose, update string, err error) error {
	var refused *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refuse("", "%s refused: %s", update, refused.Message())
	case errors.As(err, &gone):
		return refuse("`starter lots` lists the lots", "%s refused: no run of %s is open", update, whose)
	case errors.Is(wait.Err(), context.DeadlineExceeded):
		return &exitError{exitFailed, fmt.Errorf("no worker took the %s of %s within %s; start a worker and ask again", update, whose, steerTimeout)}
	default:
		return fmt.Errorf("the %s of %s failed: %w", update, whose, err)
	}
}

// pick finds a node of a lot by its name.
func pick(l track.Lot, name string) (track.Node, error) {
	for _, n := range l.Nodes {
		if n.Node.Name == name {
			return n, nil
		}
	}
	return track.Node{}, refuse("name one of "+names(l.Nodes), "lot %s has no node %q", l.Name, name)
}

// names lists nodes for a sentence, not more than fit into one.
func names(nodes []track.Node) string {
	const most = 20
	var out []string
	for _, n := range nodes {
		out = append(out, n.Node.Name)
	}
	slices.Sort(out)
	if len(out) > most {
		out = append(out[:most], "…")
	}
	return strings.Join(out, ", ")
}

// said reports a wish that was taken.
func (a *app) said(n track.Node, done, text string) error {
	if a.structured() {
		return a.encode(map[string]string{"lot": n.Node.Lot, "node": n.Node.Name, "done": done})
	}
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}
