package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// testSomeNodes: who provisions one node of a lot still has the lot.
func testSomeNodes(t *testing.T, c *cluster, s *script) {
	const lot = "stuck-some"
	file := func(servers int) string {
		path := lottest.Lot(t, lot, servers)
		rename(t, path, "0000-4000-8000", "0014-4000-8000")
		return path
	}
	k := newConsole(t, c.address)
	require.Equal(t, exitStuck, k.starter("provision", "--batch", file(3), "--yes"), k.err)
	k = k.again()
	require.Equal(t, exitOK, k.starter("abort", lot, "node-2"), k.err)
	k = k.again()
	require.Equal(t, exitAborted, k.starter("status", lot, "--watch"), k.err)
	first := resultOf(t, k, lot)
	require.Len(t, first, 3)

	k = k.again()
	require.Equal(t, exitOK, k.starter("provision", "--batch", file(3), "--yes", "--node", "node-1"), "node-2 was not asked for: %s", k.err)
	require.Contains(t, k.out.String(), "2 of 3 nodes Ready (2 ready, 1 aborted)")
	require.Contains(t, k.out.String(), "The lot's last run leaves node-2, node-3 alone: shown is how an earlier run has left them.\n")
	require.NotRegexp(t, `Z +node-[23] `, k.out.String(), "nothing happens to them")
	k = k.again()
	require.Equal(t, exitAborted, k.starter("status", lot), "the lot is not whole")
	require.Contains(t, k.out.String(), "node-2 is aborted in write by ann@"+host(t))

	s.mend(lot)
	k = k.again()
	require.Equal(t, exitOK, k.starter("provision", "--batch", file(3), "--yes", "--node", "node-2"), k.err)
	require.Contains(t, k.out.String(), "3 of 3 nodes Ready (3 ready)")
	k = k.again()
	require.Equal(t, exitOK, k.starter("status", lot), k.err)
	last := resultOf(t, k, lot)
	require.Len(t, last, 3)
	require.False(t, last["node-2"].Earlier)
	require.NotEqual(t, first["node-2"].RunID, last["node-2"].RunID)
	require.True(t, last["node-3"].Earlier)
	require.Equal(t, first["node-3"].RunID, last["node-3"].RunID, "left by the first of three runs")
	require.Len(t, last["node-3"].Phases, len(run.Phases()))
	requireWholeStory(t, k, lot)

	k = k.again()
	require.Equal(t, exitRefused, k.starter("retry", lot, "node-3"))
	require.Contains(t, k.err.String(), "node node-3 is Ready, and its run has ended")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("add", lot, "--batch", file(4), "--yes"))
	require.Contains(t, k.err.String(), " --node node-4`, which leaves the lot's others alone")
	k = k.again()
	require.Equal(t, exitOK, k.starter("provision", "--batch", file(1), "--yes"), k.err)
	require.Contains(t, k.out.String(), "warning: these nodes of the lot's last run stay as they are and are no longer shown with it: node-2 on metal-2, node-3 on metal-3; they stay the lot's when --node names those to provision\n")
	require.Len(t, resultOf(t, k, lot), 1)

	now, err := track.New(c.client, lot).Look(t.Context())
	require.NoError(t, err)
	require.NoError(t, unchanged(t.Context(), c.client, lot, now))
	require.NoError(t, unchanged(t.Context(), c.client, "none-yet", track.Lot{}))
	require.ErrorContains(t, unchanged(t.Context(), c.client, lot, track.Lot{RunID: "an earlier one"}), "was started by somebody else meanwhile")
}

// testLeftAtWork: somebody has terminated the lot's workflow, and its nodes are at
// work still. A run of the lot for another node shows them, and they are steered.
func testLeftAtWork(t *testing.T, c *cluster) {
	const lot = "block-left"
	file := func(servers int) string {
		path := lottest.Lot(t, lot, servers)
		rename(t, path, "0000-4000-8000", "0015-4000-8000")
		rename(t, path, "    config: controlplane.yaml\n", "") // else workers wait for it
		return path
	}
	k := newConsole(t, c.address)
	require.Equal(t, exitOK, k.starter("provision", "--batch", file(2), "-y", "-d"), k.err)
	atWork := func(names ...string) func() bool {
		return func() bool {
			nodes := resultOf(t, k, lot)
			for _, name := range names {
				if nodes[name].Phase != run.WaitSSH {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "both nodes are at work", atWork("node-1", "node-2"))
	require.NoError(t, c.client.TerminateWorkflow(t.Context(), run.LotID(lot), "", "a mistake"))
	k = k.again()
	require.Equal(t, exitRefused, k.starter("provision", "--batch", file(3), "-y", "--node", "node-2"), "its server is held")
	require.Contains(t, k.err.String(), "held by the run of node node-2 of lot block-left")
	k = k.again()
	require.Equal(t, exitOK, k.starter("provision", "--batch", file(3), "-y", "-d", "--node", "node-3"), k.err)
	eventually(t, "all three are at work", atWork("node-1", "node-2", "node-3"))
	nodes := resultOf(t, k, lot)
	require.True(t, nodes["node-1"].Earlier && nodes["node-2"].Earlier && !nodes["node-3"].Earlier)
	require.Equal(t, run.Running, nodes["node-1"].State)

	k = k.again()
	require.Equal(t, exitRefused, k.starter("add", lot, "--batch", file(3), "-y"), "what is left alone is not added with a file")
	require.Contains(t, k.err.String(), "lot block-left has every node of ")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("add", lot, "--batch", file(3), "-y", "--node", "node-1"), "a server that is held is not added")
	require.Contains(t, k.err.String(), "held by the run of node node-1 of lot block-left")
	k = k.again()
	require.Equal(t, exitOK, k.starter("abort", lot, "node-3"), k.err)
	requireNotLost(t, k, lot, file(2))

	k = k.again()
	require.Equal(t, exitOK, k.starter("provision", "--batch", file(4), "-y", "-d", "--node", "node-4"), k.err)
	eventually(t, "it is at work", atWork("node-4"))
	k = k.again()
	require.Equal(t, exitOK, k.starter("abort", lot, "node-1"), k.err)
	eventually(t, "it has ended", func() bool { return resultOf(t, k, lot)["node-1"].State == run.Aborted })
	k = k.again()
	require.Equal(t, exitOK, k.starter("add", lot, "--batch", file(4), "-y", "--node", "node-1"), k.err)
	eventually(t, "it is the run's now", func() bool {
		nodes := resultOf(t, k, lot)
		return len(nodes) == 4 && !nodes["node-1"].Earlier && nodes["node-1"].State == run.Running && nodes["node-2"].Earlier
	})
	for _, name := range []string{"node-1", "node-2", "node-4"} {
		k = k.again()
		require.Equal(t, exitOK, k.starter("abort", lot, name), k.err)
	}
	k = k.again()
	require.Equal(t, exitAborted, k.starter("status", lot, "-w"), k.err)
	require.Contains(t, k.out.String(), "lot block-left: 0 of 4 nodes Ready (4 aborted)", "what is left alone is waited for")

	// The run was at work when the lot's run was told of it.
	gone := resultOf(t, k, lot)["node-2"]
	_, err := c.client.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: gone.Workflow, RunId: gone.RunID},
	})
	require.NoError(t, err)
	eventually(t, "it is not said to be at work", func() bool {
		n := resultOf(t, k, lot)["node-2"]
		return n.State == run.Aborted && n.Reason == "its run has ended since, and Temporal no longer keeps how" && strings.Contains(n.Remedy, "--node node-2")
	})
}

// requireNotLost: a node that is at work is not dropped from its lot, neither by a
// file without it nor by another server of its name.
func requireNotLost(t *testing.T, k *console, lot, file string) {
	t.Helper()
	eventually(t, "the lot's run has ended", func() bool { return resultOf(t, k, lot)["node-3"].State == run.Aborted })
	rename(t, file, "name: node-2", "name: node-9")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("provision", "--batch", file, "-y"))
	require.Contains(t, k.err.String(), "node node-2 of lot block-left is at work still on server metal-2 (running in wait-ssh), and would be the lot's no longer; end it first with `starter abort block-left node-2`")
	rename(t, file, "name: node-9", "name: node-2")
	rename(t, file, "0015-4000-8000", "0016-4000-8000")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("provision", "--batch", file, "-y", "--node", "node-2"))
	require.Contains(t, k.err.String(), "node node-2 of lot block-left is at work still on server metal-2")
}

// resultOf gives how a lot's nodes stand, by name.
func resultOf(t *testing.T, k *console, lot string) map[string]show.NodeResult {
	t.Helper()
	k = k.again()
	k.starter("status", lot, "-o", "json")
	var r show.Result
	require.NoError(t, json.Unmarshal([]byte(k.out.String()), &r), k.err)
	nodes := map[string]show.NodeResult{}
	for _, n := range r.Nodes {
		nodes[n.Node] = n
	}
	return nodes
}

// requireWholeStory: the post-mortem and the completion know every node.
func requireWholeStory(t *testing.T, k *console, lot string) {
	t.Helper()
	k = k.again()
	require.Equal(t, exitOK, k.starter("postmortem", lot, "-o", "json"), k.err)
	var story history.Lot
	require.NoError(t, json.Unmarshal([]byte(k.out.String()), &story))
	require.Len(t, story.Nodes, 3)
	require.Contains(t, story.Notes, "told of earlier runs of the lot, the last one has left these nodes alone: node-1, node-3")
	for _, node := range []string{"node-1", "node-2", "node-3"} {
		k = k.again()
		require.Equal(t, exitOK, k.starter("status", lot, node), k.err)
	}
	k = k.again()
	require.Equal(t, exitOK, k.starter("__complete", "status", lot, ""), k.err)
	require.Contains(t, k.out.String(), "node-3\tready\n")
}
