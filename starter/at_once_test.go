package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// testLotsAtOnce: of two lots with the same servers that are started at the same
// moment one has the servers, and the other is refused them, whoever has looked
// before. Then somebody terminates a run.
func testLotsAtOnce(t *testing.T, c *cluster, s *script) {
	k := newConsole(t, c.address)
	file := func(lot string) string {
		path := lottest.Lot(t, lot, 2)
		rename(t, path, "0000-4000-8000", "0010-4000-8000")
		rename(t, path, "    config: controlplane.yaml\n", "") // else workers wait for it
		return path
	}
	first, second := file("block-first"), file("second-at-once")
	require.Equal(t, exitOK, k.starter("provision", "--batch", first, "-y", "-d"), k.err)
	tracker := track.New(c.client, "block-first")
	eventually(t, "both servers are held", func() bool {
		l, err := tracker.Look(t.Context())
		return err == nil && s.isBlocked("block-first") && l.Nodes[0].Phase == run.WaitSSH && l.Nodes[1].Phase == run.WaitSSH
	})

	k = k.again()
	require.Equal(t, exitRefused, k.starter("provision", "--batch", second, "-y"))
	lines := strings.Split(strings.TrimSpace(k.err.String()), "\n")
	require.Len(t, lines, 2)
	for i, line := range lines {
		require.Contains(t, line, []string{"starter: the server of node node-1 is held by", "starter: the server of node node-2 is held by"}[i])
	}

	p, err := k.prepare(t.Context(), second, nil)
	require.NoError(t, err)
	require.NoError(t, start(t.Context(), c.client, p), "nobody has looked")
	k = k.again()
	require.Equal(t, exitAborted, k.starter("status", "second-at-once", "-w"), k.err)
	require.Contains(t, k.out.String(), "0 of 2 nodes Ready (2 refused)")
	require.Contains(t, k.out.String(), "node-1 is refused: another run holds server metal-1")
	l, err := tracker.Look(t.Context())
	require.NoError(t, err)
	for _, n := range l.Nodes {
		require.Equal(t, run.Running, n.State, "the first lot's runs do not notice")
		require.Equal(t, "block-first", n.Status.Node.Lot)
	}

	k = k.again()
	require.Equal(t, exitRefused, k.starter("provision", "--batch", first, "-y"))
	require.Contains(t, k.err.String(), "and none of its nodes is stuck")
	require.NotContains(t, k.err.String(), "retry")
	k = k.again()
	require.Equal(t, exitOK, k.starter("pause", "block-first"), k.err)
	require.Equal(t, "lot block-first is paused, but no node was waiting to be started; the 2 nodes at work go on to their end; "+
		"the pause holds up only nodes that are added, until `starter resume block-first`\n", k.out.String())

	requireTerminated(t, c, k, l)
}

// requireTerminated: what is told of a run that somebody terminates are our words.
func requireTerminated(t *testing.T, c *cluster, k *console, l track.Lot) {
	t.Helper()
	require.NoError(t, c.client.TerminateWorkflow(t.Context(), l.Nodes[0].WorkflowID, "", "wrong rack"))
	k = k.again()
	require.Equal(t, exitOK, k.starter("abort", "block-first", "node-2"), k.err)
	k = k.again()
	require.Equal(t, exitAborted, k.starter("status", "block-first", "-w"), k.err)
	require.Contains(t, k.out.String(), "\nnode-1 is aborted in wait-ssh: its run was terminated in Temporal in wait-ssh\n"+
		"  what to do: a job may still be at work on the machine; provision it again with `starter provision --batch LOT.YAML --node node-1` when its lot has ended, which stops it first\n")
	var told run.LotStatus
	require.NoError(t, c.client.GetWorkflow(t.Context(), run.LotID("block-first"), "").Get(t.Context(), &told))
	require.Equal(t, "its run was terminated in Temporal; `starter status block-first node-1` tells how its server was left", told.Nodes[0].Reason)
	k = k.again()
	require.Equal(t, exitAborted, k.starter("status", "block-first", "-o", "json"))
	var result show.Result
	require.NoError(t, json.Unmarshal([]byte(k.out.String()), &result))
	require.Contains(t, result.Nodes[0].Remedy, "a job may still be at work")
}
