//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/ironlot/ironlot/internal/provider/scaleway"
	"github.com/ironlot/ironlot/internal/run"
)

// read takes from Temporal when runs began and ended, and how large their
// histories are, and from the machines all the rest.
func (s *site) read(ctx context.Context, r *result) error {
	began, err := s.readLot(ctx, r)
	if err != nil {
		return err
	}
	var events, bytes []float64
	for i, server := range s.lab.Servers() {
		id := run.ID(scaleway.Name, server.ID)
		d, err := s.client.DescribeWorkflow(ctx, id, "")
		if err != nil {
			return fmt.Errorf("the run of %s cannot be looked at: %w", server.Node, err)
		}
		info := d.RawResponse.GetWorkflowExecutionInfo()
		m := s.watched.machines[i]
		m.ran, m.finished = began, info.GetCloseTime().AsTime()
		events, bytes = append(events, float64(info.GetHistoryLength())), append(bytes, float64(info.GetHistorySizeBytes()))
	}
	r.NodeEvents, r.NodeBytes = spreadOf(events), spreadOf(bytes)
	r.judge(s.watched.machines)
	if r.Longest.machine < 0 {
		return nil
	}
	server := s.lab.Servers()[r.Longest.machine]
	r.Longest.Node = server.Node
	if s.o.history == "" {
		return nil
	}
	return s.save(ctx, run.ID(scaleway.Name, server.ID), s.o.history)
}

// readLot reads the runs of the lot's workflow; it gives the first one's start.
func (s *site) readLot(ctx context.Context, r *result) (time.Time, error) {
	list, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", run.LotID(lotName))})
	if err != nil {
		return time.Time{}, err
	}
	runs := list.GetExecutions()
	if len(runs) == 0 {
		return time.Time{}, fmt.Errorf("no run of lot %s is listed by Temporal", lotName)
	}
	slices.Reverse(runs) // the newest came first
	for _, one := range runs {
		d, err := s.client.DescribeWorkflow(ctx, one.GetExecution().GetWorkflowId(), one.GetExecution().GetRunId())
		if err != nil {
			return time.Time{}, err
		}
		info := d.RawResponse.GetWorkflowExecutionInfo()
		r.LotEvents = append(r.LotEvents, info.GetHistoryLength())
		r.LotBytes = append(r.LotBytes, info.GetHistorySizeBytes())
	}
	began := runs[0].GetStartTime().AsTime()
	r.MakespanSeconds = runs[len(runs)-1].GetCloseTime().AsTime().Sub(began).Seconds()
	return began, nil
}
