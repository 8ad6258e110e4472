package tests

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

var record = flag.Bool("record", false, "write histories for the replay tests to workflows/testdata/histories") //nolint:gochecknoglobals // a flag

// TestHistories makes the runs whose histories the replay tests keep: a lot
// that goes well, one that is stuck and retried, one that rewinds, one that is
// aborted, one that is corrected, and a dry run. With -record it writes them.
func TestHistories(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, Lot: "recorded", Faults: faults(t, "reset-mid-write@2")})
	s.startWorker()
	inputs := s.inputs(nil)
	// The lot's own nodes: one goes well, one rewinds.
	var lot run.LotStatus
	require.NoError(t, s.startLot(inputs).Get(t.Context(), &lot))
	kept := map[string][]byte{
		"lot.json":     historyJSON(t, s.client, run.LotID("recorded")),
		"ready.json":   historyJSON(t, s.client, inputs[0].Node.ID()),
		"rewinds.json": historyJSON(t, s.client, inputs[1].Node.ID()),
	}
	require.Positive(t, s.status(inputs[1].Node.ID()).Rewinds)

	// Stuck in preflight, for it is a live node now; retried, then aborted.
	r := s.startNode(inputs[0])
	s.waitFor(r.GetID(), run.Stuck, run.Preflight)
	s.update(r.GetID(), run.UpdateRetry, run.RetryRequest{Reason: "once more"})
	s.eventually("it is stuck again", waitLong, func() bool {
		st := s.status(r.GetID())
		return st.State == run.Stuck && len(st.Timeline) == 2
	})
	s.abort(r.GetID())
	require.Equal(t, run.Aborted, s.result(r).State)
	kept["stuck-aborted.json"] = historyJSON(t, s.client, inputs[0].Node.ID())

	// Stuck in stage with a wrong digest, which a retry corrects.
	r = s.startNode(s.inputs(func(n *run.Node) { n.Reprovision, n.Image.RawSHA256 = true, wrongDigest })[0])
	s.waitFor(r.GetID(), run.Stuck, run.Stage)
	right := s.inputs(func(n *run.Node) { n.Reprovision = true })[0]
	s.update(r.GetID(), run.UpdateRetry, run.RetryRequest{Input: &right})
	require.Equal(t, run.Ready, s.result(r).State)
	kept["stuck-corrected.json"] = historyJSON(t, s.client, inputs[0].Node.ID())
	s.dryRun(inputs)
	kept["check.json"] = historyJSON(t, s.client, run.CheckID("recorded"))
	keep(t, kept)
}

// TestHistoriesOfABundledLot makes a lot of which so many nodes start together
// that it takes the news of them in bundles. The nodes' runs do nothing but wait.
func TestHistoriesOfABundledLot(t *testing.T) {
	t.Parallel()
	const nodes = 12
	s := newStack(t, lab.Options{Servers: 1, Lot: "bundled"})
	waitingNodes(t, s, 100*time.Millisecond)
	inputs := manyInputs(s, nodes)
	for i := range inputs {
		inputs[i].Sealed = run.Sealed{Config: "sealed", Talosconfig: "sealed"} // short: the history is kept
	}
	// The lot has news already when its nodes are asked to start, so that it
	// gathers more, however fast Temporal and the worker are.
	news := run.NodeState{Name: inputs[0].Node.Name, State: run.Running}
	r, err := s.client.SignalWithStartWorkflow(t.Context(), run.LotID("bundled"), run.SignalNodeState, news,
		client.StartWorkflowOptions{TaskQueue: run.TaskQueue}, run.WorkflowLot, run.LotInput{Lot: "bundled", Nodes: inputs}.Share())
	require.NoError(t, err)
	var status run.LotStatus
	require.NoError(t, r.Get(t.Context(), &status))
	require.Len(t, status.Nodes, nodes)
	history := historyJSON(t, s.client, r.GetID())
	require.True(t, bytes.Contains(history, []byte("EVENT_TYPE_MARKER_RECORDED")), "it has gathered news")
	keep(t, map[string][]byte{"lot-bundled.json": history})
}

// keep writes histories for the replay tests, with -record.
func keep(t *testing.T, kept map[string][]byte) {
	t.Helper()
	if !*record {
		return
	}
	dir := filepath.Join("workflows", "testdata", "histories")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, history := range kept {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), history, 0o644))
	}
}
