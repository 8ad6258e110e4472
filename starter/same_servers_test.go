package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// testSameServers: what is told of a lot is told of its own runs, whatever ran
// on its servers since.
func testSameServers(t *testing.T, c *cluster) {
	ran := map[string]show.Result{}
	for _, name := range []string{"written-first", "kept-second"} {
		path := lottest.Lot(t, name, 2)
		rename(t, path, "0000-4000-8000", "0008-4000-8000")
		rename(t, path, "name: node-", "name: "+name+"-")
		require.Equal(t, exitOK, newConsole(t, c.address).starter("provision", "--batch", path, "-y"))
	}
	for _, name := range []string{"written-first", "kept-second"} {
		r, ok := find(t, newConsole(t, c.address), "status "+name, func(r show.Result) bool { return r.Event == "result" })
		require.True(t, ok)
		require.Len(t, r.Nodes, 2)
		require.NotEmpty(t, r.Nodes[1].RunID)
		ran[name] = r
	}
	first, second := ran["written-first"].Nodes[1], ran["kept-second"].Nodes[1]
	require.Equal(t, first.Workflow, second.Workflow)
	require.NotEqual(t, first.RunID, second.RunID)
	require.Len(t, first.Phases, len(run.Phases()))
	require.Len(t, second.Phases, 1, "it was left alone")

	for name, r := range ran {
		node := r.Nodes[1]
		k := newConsole(t, c.address)
		require.Equal(t, exitOK, k.starter("postmortem", name, node.Node, "-o", "json"), k.err)
		var story history.Lot
		require.NoError(t, json.Unmarshal([]byte(k.out.String()), &story))
		require.Equal(t, name, story.Nodes[0].Node.Lot)
		require.Equal(t, node.Node, story.Nodes[0].Node.Name)

		k = k.again()
		k.vars["IRONLOT_WEB_UI"] = "http://ui.example/"
		require.Equal(t, exitOK, k.starter("ui", name, node.Node), k.err)
		require.Contains(t, k.out.String(), "/"+node.RunID+"/")
	}
	requireWrittenAndKept(t, c, first, second)
	requireNotSteered(t, c, first)
	requireTakenOver(t, c)
}

// requireTakenOver: a lot says itself that another one has its servers since.
func requireTakenOver(t *testing.T, c *cluster) {
	t.Helper()
	k := newConsole(t, c.address)
	require.Equal(t, exitOK, k.starter("status", "written-first"), k.err)
	require.Regexp(t, `written-first-1 +metal-1 +ready \*`, k.out.String())
	require.Contains(t, k.out.String(), "\nwritten-first-1 became Ready in this lot, and that may hold no longer: lot stuck-third has installed its server anew")
	require.Contains(t, k.out.String(), "\nwritten-first-2 became Ready in this lot, and that may hold no longer: lot stuck-third had its server since")
	require.Contains(t, k.out.String(), "that was aborted in write; see `starter status stuck-third node-2`")
	r, ok := find(t, k.again(), "status kept-second", func(r show.Result) bool { return r.Event == "result" })
	require.True(t, ok)
	require.Equal(t, "stuck-third", r.Nodes[0].Newer.Lot)
	require.True(t, r.Nodes[0].Newer.Reinstalled())
	eventually(t, "the list knows it too", func() bool {
		s, ok := find(t, k.again(), "lots", func(s track.Summary) bool { return s.Lot == "written-first" })
		return ok && len(s.Newer) == 2
	})
	k = k.again()
	require.Equal(t, exitOK, k.starter("lots"), k.err)
	require.Regexp(t, `written-first +ready \* .*lot stuck-third has, or had, 2 servers of it since \(1 ready, 1 aborted\)`, k.out.String())
	k = k.again()
	require.Equal(t, exitOK, k.starter("inventory", "written-first"), k.err)
	require.Regexp(t, `kept-second-2 \* .*aborted, lot stuck-third`, k.out.String())
	require.Contains(t, k.out.String(), "server metal-1 was a node of lot written-first, and lot stuck-third has installed it anew as node-1")
}

// requireNotSteered: a wish for a lot whose run has ended reaches no other
// lot's run on the same server, which would erase or end what nobody meant.
func requireNotSteered(t *testing.T, c *cluster, ended show.NodeResult) {
	t.Helper()
	path := lottest.Lot(t, "stuck-third", 2)
	rename(t, path, "0000-4000-8000", "0008-4000-8000")
	require.Equal(t, exitStuck, newConsole(t, c.address).starter("provision", "--batch", path, "-y"))
	open, err := c.client.DescribeWorkflow(t.Context(), ended.Workflow, "")
	require.NoError(t, err)
	require.NotEqual(t, ended.RunID, open.WorkflowExecution.RunID)
	for _, wish := range []string{"abort", "retry", "retry --from reboot-rescue"} {
		k := newConsole(t, c.address)
		require.Equal(t, exitRefused, k.starter(append(strings.Fields(wish), "written-first", ended.Node)...), wish)
		require.Contains(t, k.err.String(), ended.Node)
	}
	after, err := c.client.DescribeWorkflow(t.Context(), ended.Workflow, open.WorkflowExecution.RunID)
	require.NoError(t, err)
	require.Equal(t, open.RawResponse.GetWorkflowExecutionInfo().GetHistoryLength(), after.RawResponse.GetWorkflowExecutionInfo().GetHistoryLength())
	require.Equal(t, exitOK, newConsole(t, c.address).starter("abort", "stuck-third", "node-2"))
}

// requireWrittenAndKept looks at the inventory of both lots.
func requireWrittenAndKept(t *testing.T, c *cluster, wrote, kept show.NodeResult) {
	t.Helper()
	for _, command := range []string{"inventory", "inventory written-first", "inventory kept-second"} {
		var i track.Item
		eventually(t, "the list knows both runs", func() bool {
			var ok bool
			i, ok = find(t, newConsole(t, c.address), command, func(i track.Item) bool { return i.WorkflowID == wrote.Workflow })
			return ok && i.Confirmed != nil
		})
		require.Equal(t, "written-first", i.Lot)
		require.Equal(t, wrote.RunID, i.RunID)
		require.Equal(t, "S-written-first", i.SystemDisk.Serial)
		require.Equal(t, "data-written-first", i.ImageDataSHA256)
		require.Equal(t, kept.Node, i.Node, "as it is called now")
		require.Equal(t, "config-kept-second", i.ConfigSHA256)
		require.Equal(t, kept.RunID, i.Confirmed.RunID)
		require.Equal(t, "kept-second", i.Confirmed.Lot)
	}
	k := newConsole(t, c.address)
	require.Equal(t, exitOK, k.starter("inventory", "written-first", "-o", "wide"), k.err)
	require.Contains(t, strings.Join(strings.Fields(k.out.String()), " "), "CONFIRMED")
	require.Contains(t, k.out.String(), "lot kept-second")
}
