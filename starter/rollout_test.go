package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// host is this computer's name, as people's wishes are told to be from.
func host(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	require.NoError(t, err)
	return name
}

// testRollout holds a lot up at a stuck canary, adds a node (the lot's
// workflow continues as new), pauses it, and lets it go on to its end.
func testRollout(t *testing.T, c *cluster, s *script) {
	const lot = "stuck-rollout"
	file := func(servers int) string {
		path := lottest.Lot(t, lot, servers)
		rename(t, path, "0000-4000-8000", "0009-4000-8000")
		rename(t, path, "nodes:\n", "rollout: {canary: 2, parallel: 2}\nnodes:\n")
		return path
	}
	k := newConsole(t, c.address)
	require.Equal(t, exitStuck, k.starter("provision", "--batch", file(3), "--yes"), k.err)
	require.Contains(t, k.out.String(), "1 node waits because the canary node-2 is stuck; let it go on with `starter retry stuck-rollout node-2`, or do without it")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("resume", lot))
	require.Contains(t, k.err.String(), "is not paused")

	k = k.again()
	require.Equal(t, exitRefused, k.starter("add", lot, "--batch", file(3), "--yes"))
	require.Contains(t, k.err.String(), "has every node")
	k = k.again()
	require.Equal(t, exitOK, k.starter("add", lot, "--batch", file(4), "--yes"), k.err)
	require.Contains(t, k.out.String(), "1 node added")
	require.NotContains(t, k.out.String(), "metal-3 ", "what the lot has already is not erased again")
	tracker := track.New(c.client, lot)
	eventually(t, "the lot has the node", func() bool {
		l, err := tracker.Look(t.Context())
		return err == nil && len(l.Nodes) == 4 && l.Nodes[0].State == run.Ready && l.Nodes[1].State == run.Stuck && l.Nodes[3].State == run.Queued
	})

	k = k.again()
	require.Equal(t, exitOK, k.starter("pause", lot, "--reason", "lunch"), k.err)
	require.Equal(t, "lot stuck-rollout starts no further node, and 2 nodes stay in the queue; 1 node stuck can be retried and aborted as before; `starter resume stuck-rollout` goes on\n", k.out.String())
	s.mend(lot)
	k = k.again()
	require.Equal(t, exitOK, k.starter("retry", lot, "node-2"), k.err)
	k = k.again()
	require.Equal(t, exitStuck, k.starter("status", lot, "--watch"), "a paused lot waits for a person")
	require.Contains(t, k.out.String(), "lot stuck-rollout: 2 of 4 nodes Ready (2 ready, 2 queued)")
	require.Contains(t, k.out.String(), "The lot is paused by ann@"+host(t)+": lunch; 2 nodes wait until `starter resume stuck-rollout` lets it start nodes again")
	k = k.again()
	require.Equal(t, exitStuck, k.starter("status", lot, "-o", "json"))
	require.Contains(t, k.out.String(), `"paused":{"reason":"lunch","by":"ann@`)
	k = k.again()
	require.Equal(t, exitOK, k.starter("lots", "-o", "json"), k.err)
	require.Contains(t, k.out.String(), `"paused":{"reason":"lunch"`)
	k = k.again()
	require.Equal(t, exitOK, k.starter("lots"), k.err)
	require.Contains(t, k.out.String(), "paused by ann@"+host(t)+": lunch")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("pause", lot))
	require.Contains(t, k.err.String(), "`starter resume stuck-rollout`")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("pause", "nolot"))
	require.Contains(t, k.err.String(), `there is no lot "nolot"; `+"`starter status` lists the lots")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("retry", lot, "node-4"))
	require.Contains(t, k.err.String(), "node node-4 is queued and has not been started; the lot is paused by ann@"+host(t)+": lunch")
	k = k.again()
	require.Equal(t, exitOK, k.starter("abort", lot, "node-4", "--reason", "sold", "-o", "json"), k.err)
	require.JSONEq(t, `{"lot":"stuck-rollout","node":"node-4","done":"abort","simulated":true}`, k.out.String())
	k = k.again()
	require.Equal(t, exitRefused, k.starter("retry", lot, "node-4"))
	require.Contains(t, k.err.String(), "`starter provision --batch LOT.YAML --node node-4` once lot stuck-rollout has ended")
	k = k.again()
	require.Equal(t, exitOK, k.starter("resume", lot), k.err)
	eventually(t, "the lot goes on", func() bool {
		l, err := tracker.Look(t.Context())
		return err == nil && l.Held == ""
	})
	k = k.again()
	require.Equal(t, exitAborted, k.starter("status", lot, "--watch"), k.err)
	require.Contains(t, k.out.String(), "3 of 4 nodes Ready (3 ready, 1 aborted)")
	require.Contains(t, k.out.String(), "node-4 is aborted by ann@"+host(t)+" before it was started: sold\n")
	for _, format := range []string{"md", "html", "json"} {
		k = k.again()
		require.Equal(t, exitOK, k.starter("postmortem", lot, "--format", format), k.err)
		require.Contains(t, k.out.String(), "lunch")
		require.Contains(t, k.out.String(), "resume")
		require.GreaterOrEqual(t, strings.Count(k.out.String(), "ann@"+host(t)), 3, "who paused, resumed and aborted")
		require.NotContains(t, k.out.String(), run.SignalContinued)
	}
	k = k.again()
	require.Equal(t, exitRefused, k.starter("add", lot, "--batch", file(4), "--yes"))
	require.Contains(t, k.err.String(), "has ended")
}
