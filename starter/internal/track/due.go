package track

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"golang.org/x/sync/errgroup"

	"github.com/ironlot/ironlot/internal/run"
)

const (
	// nodesPerLook is how many nodes a look asks Temporal for when it has seen
	// all of them before: a lot of a thousand must not keep Temporal busy with
	// being watched.
	nodesPerLook = 30
	// newsPerLook is how many it asks for that are known to have changed.
	newsPerLook = 120
)

// refresh looks at the nodes whose turn it is: all at first and at the lot's
// end, else those that a list of their workflows shows elsewhere than they
// were, and of the rest the ones that were not looked at for the longest.
func (t *Tracker) refresh(ctx context.Context, lot Lot) error {
	t.look++
	signs := t.signs(ctx, lot)
	due := all(len(t.inputs))
	if signs != nil {
		due = choose(t.nodes, signs)
	}
	return t.lookAt(ctx, due, signs, lot.Open)
}

// lookAt looks at some nodes, of which the signs are what the list showed; nil:
// nothing.
func (t *Tracker) lookAt(ctx context.Context, due []int, signs []string, open bool) error {
	g, looking := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for _, i := range due {
		g.Go(func() error {
			seen, told, err := t.node(looking, i, open)
			if err != nil {
				return err
			}
			m := &t.nodes[i]
			m.seen, m.told, m.look = seen, told, t.look
			if signs != nil {
				m.sign = signs[i]
			}
			return nil
		})
	}
	return g.Wait()
}

// signs tells where each node is by a list, which costs one call and knows
// less, a moment later. Nil: everything is to be looked at.
func (t *Tracker) signs(ctx context.Context, lot Lot) []string {
	if len(t.inputs) <= nodesPerLook || !lot.Open {
		return nil
	}
	query := fmt.Sprintf("WorkflowType = '%s' AND %s = '%s'", run.WorkflowNode, run.AttrLot, t.lot)
	if len(t.runs) == 0 { // it has not continued: its nodes are younger than it is
		query += fmt.Sprintf(" AND StartTime >= '%s'", lot.Started.UTC().Format(time.RFC3339Nano))
	}
	listed := map[string]string{}
	err := list(ctx, t.client, query, func(info *workflowpb.WorkflowExecutionInfo) bool {
		if r := nodeRunOf(info); t.mine(r.parentRunID) && listed[r.workflowID] == "" { // the newest comes first
			listed[r.workflowID] = fmt.Sprint(r.runID, r.state, keyword(info.GetSearchAttributes().GetIndexedFields(), run.AttrPhase), info.GetStatus())
		}
		return true
	})
	if err != nil {
		return nil
	}
	signs := make([]string, len(t.inputs))
	for i, in := range t.inputs {
		signs[i] = listed[in.Node.ID()]
		if i < len(t.status.Nodes) {
			signs[i] = strings.Join([]string{signs[i], string(t.status.Nodes[i].State), t.status.Nodes[i].Reason}, " ")
		}
	}
	return signs
}

// choose gives the nodes to look at when the signs of all are known. Nothing can
// be shown of one that was never looked at.
func choose(nodes []nodeMemory, signs []string) []int {
	var due, news, rest []int
	for i := range nodes {
		switch {
		case nodes[i].look == 0:
			due = append(due, i)
		case nodes[i].sign != signs[i]:
			news = append(news, i)
		case !nodes[i].seen.State.Final():
			rest = append(rest, i)
		}
	}
	longest := func(a, b int) int { return cmp.Compare(nodes[a].look, nodes[b].look) }
	slices.SortStableFunc(news, longest)
	slices.SortStableFunc(rest, longest)
	due = append(due, news[:min(len(news), newsPerLook)]...)
	return append(due, rest[:min(len(rest), max(0, nodesPerLook-len(due)))]...)
}

func all(n int) []int {
	indexes := make([]int, n)
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}
