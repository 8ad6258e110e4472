package track

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ironlot/ironlot/internal/run"
)

// TestWhichNodesAreLookedAt: news come first, then the ones that were not
// looked at for the longest; what is final and as it was is left alone.
func TestWhichNodesAreLookedAt(t *testing.T) {
	t.Parallel()
	nodes := make([]nodeMemory, 200)
	signs := make([]string, len(nodes))
	for i := range nodes {
		nodes[i] = nodeMemory{look: 10 + i%7, seen: Node{State: run.Running}}
	}
	due := choose(nodes, signs)
	require.Len(t, due, nodesPerLook)
	for _, i := range due {
		require.Less(t, nodes[i].look, 12, "the longest ago")
	}

	nodes[3].look, nodes[150].seen.State = 0, run.Ready
	signs[90], signs[150] = "stage", "Completed"
	due = choose(nodes, signs)
	require.Equal(t, []int{3, 150, 90}, due[:3])
	require.Len(t, due, nodesPerLook)

	for i := range nodes {
		nodes[i].seen.State, signs[i] = run.Ready, ""
	}
	nodes[3].look = 1
	require.Empty(t, choose(nodes, signs))
	for i := range nodes {
		signs[i] = "Completed"
	}
	require.Len(t, choose(nodes, signs), newsPerLook)
}

// TestNoNodeIsForgotten: with a list that shows nothing new, every node is
// looked at again before any is looked at twice.
func TestNoNodeIsForgotten(t *testing.T) {
	t.Parallel()
	nodes := make([]nodeMemory, 100)
	signs := make([]string, len(nodes))
	for i := range nodes {
		nodes[i] = nodeMemory{look: 1, seen: Node{State: run.Running}}
	}
	for look := 2; look <= 5; look++ {
		for _, i := range choose(nodes, signs) {
			nodes[i].look = look
		}
	}
	for i, n := range nodes {
		require.Greater(t, n.look, 1, i)
	}
}

// rack is a Temporal with a lot whose nodes are at work.
type rack struct {
	client.Client
	nodes int

	mu        sync.Mutex
	phase     map[string]run.Phase // of the node with this workflow ID
	described map[string]int
	listed    int
	noList    error
	broken    string // the workflow that cannot be described
	closed    bool   // the lot has ended
	stuck     bool   // every node is
}

func payload(t *testing.T, value any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	return p
}

func (r *rack) info(t *testing.T, id string) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	state := run.Running
	if r.stuck {
		state = run.Stuck
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run of " + id}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		ParentExecution: &commonpb.WorkflowExecution{RunId: "lot's run"},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{
			run.AttrPhase: payload(t, r.phase[id]), run.AttrState: payload(t, state),
		}},
	}
}

// asked is a rack that a test asks.
type asked struct {
	*rack
	t *testing.T
}

func (a asked) DescribeWorkflow(ctx context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if id == a.broken {
		return nil, errors.New("busy")
	}
	info := a.info(a.t, id)
	if id == run.LotID("rack") {
		info.Execution.RunId = "lot's run"
		if a.closed {
			info.Status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
		}
	} else {
		if a.phase[id] == "" {
			return nil, serviceerror.NewNotFound("not started")
		}
		a.described[id]++
	}
	return &client.WorkflowExecutionDescription{RawResponse: &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}}, nil
}

func (a asked) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed++
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	for id := range a.phase {
		answer.Executions = append(answer.Executions, a.info(a.t, id))
	}
	return answer, a.noList
}

func (a asked) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, errors.New("no worker")
}

func (a asked) GetWorkflow(context.Context, string, string) client.WorkflowRun { return nothing{} }

type nothing struct{ client.WorkflowRun }

func (nothing) Get(context.Context, any) error { return nil }

// looks counts how often nodes were asked for since the last time.
func (r *rack) looks() (nodes, times int) {
	for _, n := range r.described {
		nodes, times = nodes+1, times+n
	}
	r.described = map[string]int{}
	return nodes, times
}

func follow(t *testing.T, nodes int) (*rack, *Tracker, func(i int) string) {
	t.Helper()
	r := &rack{nodes: nodes, phase: map[string]run.Phase{}, described: map[string]int{}}
	tracker := New(asked{r, t}, "rack")
	tracker.runID = "lot's run"
	for i := range nodes {
		tracker.inputs = append(tracker.inputs, run.NodeInput{Node: run.Node{Name: fmt.Sprint("n", i), Provider: "lab", Zone: "z", ServerID: fmt.Sprint(i)}})
		r.phase[tracker.inputs[i].Node.ID()] = run.Stage
	}
	tracker.nodes = make([]nodeMemory, nodes)
	return r, tracker, func(i int) string { return tracker.inputs[i].Node.ID() }
}

// TestALargeLotIsFollowedByItsList: after the first look the list tells which
// nodes to ask for, and a node that moves is seen at the next look.
func TestALargeLotIsFollowedByItsList(t *testing.T) {
	t.Parallel()
	r, tracker, id := follow(t, 100)
	look := func() Lot {
		l, err := tracker.Look(t.Context())
		require.NoError(t, err)
		require.Len(t, l.Nodes, 100)
		return l
	}
	look()
	nodes, _ := r.looks()
	require.Equal(t, 100, nodes, "the first look is at all")
	require.Equal(t, run.Stage, look().Nodes[99].Phase)
	nodes, times := r.looks()
	require.Equal(t, []int{nodesPerLook, nodesPerLook}, []int{nodes, times})

	r.phase[id(99)] = run.Write
	require.Equal(t, run.Write, look().Nodes[99].Phase)

	r.phase[id(7)], r.broken = run.Write, id(7)
	_, err := tracker.Look(t.Context())
	require.ErrorContains(t, err, "n7")
	r.broken = ""
	require.Equal(t, run.Write, look().Nodes[7].Phase, "a look that failed is made up for")

	r.looks()
	r.noList = errors.New("no visibility")
	look()
	nodes, _ = r.looks()
	require.Equal(t, 100, nodes, "without a list, all are asked for")
	r.noList, r.closed = nil, true
	look()
	nodes, _ = r.looks()
	require.Equal(t, 100, nodes, "and once the lot has ended")
}

// TestAFirstLookThatFails: the next one shows every node all the same.
func TestAFirstLookThatFails(t *testing.T) {
	t.Parallel()
	r, tracker, id := follow(t, 10*newsPerLook)
	r.broken = id(0)
	_, err := tracker.Look(t.Context())
	require.ErrorContains(t, err, "n0")
	r.broken = ""
	l, err := tracker.Look(t.Context())
	require.NoError(t, err)
	for i, n := range l.Nodes {
		require.Equal(t, []string{fmt.Sprint("n", i), string(run.Stage)}, []string{n.Node.Name, string(n.Phase)})
	}
}

// TestTheLastLookIsAtAll: what is told at the end is told of every node as it is
// then, however many there are.
func TestTheLastLookIsAtAll(t *testing.T) {
	t.Parallel()
	r, tracker, _ := follow(t, 10*newsPerLook)
	_, err := tracker.Look(t.Context())
	require.NoError(t, err)
	_, err = tracker.Look(t.Context())
	require.NoError(t, err)
	r.looks()
	r.stuck = true
	for settled := false; !settled; {
		l, err := tracker.Look(t.Context())
		require.NoError(t, err)
		if settled = l.Settled(); settled {
			for i := range tracker.nodes {
				require.Equal(t, tracker.look, tracker.nodes[i].look)
			}
		}
	}
}

// TestASmallLotNeedsNoList: every node is looked at each time.
func TestASmallLotNeedsNoList(t *testing.T) {
	t.Parallel()
	r, tracker, _ := follow(t, nodesPerLook)
	for range 3 {
		_, err := tracker.Look(t.Context())
		require.NoError(t, err)
	}
	nodes, times := r.looks()
	require.Equal(t, []int{nodesPerLook, 3 * nodesPerLook, 0}, []int{nodes, times, r.listed})
}
