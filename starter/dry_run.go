package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// dryRunTimeout bounds the whole check; it needs a worker.
const dryRunTimeout = 20 * time.Minute

// dryRun lets a worker check every node of a lot against the real provider,
// and shows what a run would do. Nothing is started.
func (a *app) dryRun(ctx context.Context, c *temporal.Connection, p *prepared) error {
	checked, err := a.checkLot(ctx, c.Client, p.in)
	if err != nil {
		return err
	}
	ready, held := free(ctx, c.Client, p.lot)
	if held != nil && exitCode(held) != exitRefused {
		return held
	}
	refused := held != nil
	for _, n := range checked.Nodes {
		refused = refused || n.Problem != nil
	}
	if a.structured() {
		err = a.encode(checkFacts{LotCheck: checked, Warnings: p.warnings, Simulated: p.lot.Lab})
	} else {
		_, err = fmt.Fprint(a.stdout, show.Plan(p.lot, ready, p.warnings, a.width()), "\n", show.Wrap(show.Check(p.lot, checked), a.width()))
	}
	if err != nil {
		return err
	}
	if held != nil {
		a.complain(held)
	}
	if refused {
		return &exitError{code: exitRefused}
	}
	return nil
}

// checkFacts is the answer to programs.
type checkFacts struct {
	run.LotCheck

	Warnings  []string `json:"warnings,omitempty"` // of the lot file
	Simulated bool     `json:"simulated,omitempty"`
}

func (a *app) checkLot(ctx context.Context, c client.Client, in run.LotInput) (run.LotCheck, error) {
	var checked run.LotCheck
	r, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run.CheckID(in.Lot), TaskQueue: run.TaskQueue, WorkflowExecutionTimeout: dryRunTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
		StaticSummary:            "lot " + in.Lot + ": dry run, nothing is touched",
	}, run.WorkflowCheck, in)
	if err != nil {
		return checked, fmt.Errorf("the check of lot %s cannot be started: %w", in.Lot, err)
	}
	stop := a.showCheck(ctx, c, in)
	err = r.Get(ctx, &checked)
	stop()
	if ctx.Err() != nil {
		return checked, &exitError{exitInterrupted, errors.New("interrupted; nothing was touched")}
	}
	if terminated := new(sdk.TerminatedError); errors.As(err, &terminated) {
		return checked, refuse("ask whoever did, and try again", "the check of lot %s was ended from outside, as another dry run of the lot does", in.Lot)
	}
	if err != nil {
		return checked, fmt.Errorf("the check of lot %s did not end well (does a worker run?): %w", in.Lot, err)
	}
	return checked, nil
}

// showCheck tells how far the check of a lot has come, for as long as it takes
// until stop is called.
func (a *app) showCheck(ctx context.Context, c client.Client, in run.LotInput) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		var last track.Checking
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			seen, err := track.LookAtCheck(ctx, c, in.Lot, len(in.Nodes))
			if err != nil || seen == last {
				continue // a look that fails harms nobody
			}
			last = seen
			a.tell(show.Checking(in.Lot, seen))
		}
	})
	return func() {
		cancel()
		showing.Wait()
	}
}
