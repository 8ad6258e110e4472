package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// TestCommands runs the commands against a real Temporal with the real
// workflows.
func TestCommands(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	s := &script{mended: map[string]bool{}, blocked: map[string]struct{}{}}
	c.work(t, s.phase)
	t.Run("all Ready", func(t *testing.T) { t.Parallel(); testReady(t, c) })
	t.Run("JSON", func(t *testing.T) { t.Parallel(); testJSON(t, c) })
	t.Run("stuck", func(t *testing.T) { t.Parallel(); testStuck(t, c, s) })
	t.Run("screen", func(t *testing.T) { t.Parallel(); testScreen(t, c) })
	t.Run("rollout", func(t *testing.T) { t.Parallel(); testRollout(t, c, s) })
	t.Run("some nodes", func(t *testing.T) { t.Parallel(); testSomeNodes(t, c, s) })
	t.Run("left at work", func(t *testing.T) { t.Parallel(); testLeftAtWork(t, c) })
	t.Run("interrupt", func(t *testing.T) { t.Parallel(); testInterrupt(t, c, s) })
	t.Run("lists", func(t *testing.T) { t.Parallel(); testLists(t, c) })
	t.Run("lots on the same servers", func(t *testing.T) { t.Parallel(); testSameServers(t, c) })
	t.Run("lots at once", func(t *testing.T) { t.Parallel(); testLotsAtOnce(t, c, s) })
	t.Run("asking", func(t *testing.T) { t.Parallel(); testAsking(t, c) })
	t.Run("more erased", func(t *testing.T) { t.Parallel(); testMoreErased(t, c, s) })
	t.Run("one remedy", func(t *testing.T) { t.Parallel(); testRemedy(t, c) })
	t.Run("refusals", func(t *testing.T) { t.Parallel(); testRefusals(t, c) })
}

func testReady(t *testing.T, c *cluster) {
	k := newConsole(t, c.address)
	k.vars["IRONLOT_WEB_UI"] = "http://ui.example"
	path := lottest.Lot(t, "ready", 3)
	require.Equal(t, exitOK, k.starter("provision", "--batch", path, "--yes"), k.err)
	out := k.out.String()
	for _, want := range []string{
		show.Simulated,
		"Lot ready: 3 servers in fr-par-2 to become Talos nodes. What is ERASED:",
		"node-2  metal-2  00000000-0000-4000-8000-000000000002  the smallest  ERASED",
		"node-1  metal-1  00000000-0000-4000-8000-000000000001  the smallest  kept",
		"warning: the image has no digest",
		"node-3  ready",
		"lot ready: 3 of 3 nodes Ready (3 ready)",
		"Web UI: http://ui.example",
	} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "\x1b", "no terminal, no terminal commands")
	require.Empty(t, k.err.String())

	k = k.again()
	require.Equal(t, exitOK, k.starter("status", "ready"), k.err)
	require.Contains(t, k.out.String(), "WAIT-READY")
	k = k.again()
	require.Equal(t, exitOK, k.starter("status", "ready", "node-2"), k.err)
	require.Contains(t, k.out.String(), "workflow  provision/scaleway/00000000-0000-4000-8000-000000000002")
	require.Equal(t, len(run.Phases()), strings.Count(k.out.String(), "proved"))
	eventually(t, "the lot is listed", func() bool {
		k = k.again()
		return k.starter("status") == exitOK && strings.Contains(k.out.String(), "ready ")
	})
	k = k.again()
	require.Equal(t, exitRefused, k.starter("provision", "--batch", path), "nobody can be asked")
	require.Contains(t, k.out.String(), "node-2  metal-2  00000000-0000-4000-8000-000000000002  not erased *  not erased *")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("retry", "ready", "node-2"))
	require.Contains(t, k.err.String(), "node node-2 is Ready, and its run has ended")
	require.Contains(t, k.err.String(), "`starter provision --batch LOT.YAML --node node-2`")
}

func testJSON(t *testing.T, c *cluster) {
	k := newConsole(t, c.address)
	path := lottest.Lot(t, "json", 2)
	// Servers of their own: lots run side by side.
	rename(t, path, "0000-4000-8000", "0001-4000-8000")
	require.Equal(t, exitOK, k.starter("provision", "--batch", path, "--yes", "-o", "json"), k.err)
	require.Contains(t, k.err.String(), "ERASED", "the plan is for people")
	lines := strings.Split(strings.TrimSpace(k.out.String()), "\n")
	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)), line)
	}
	var result show.Result
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &result))
	require.Equal(t, "result", result.Event)
	require.True(t, result.Simulated)
	require.Len(t, result.Nodes, 2)
	require.Equal(t, run.Ready, result.Nodes[1].State)
	require.Len(t, result.Nodes[1].Phases, len(run.Phases()))

	k = k.again()
	require.Equal(t, exitOK, k.starter("status", "json", "node-1", "-o", "json"), k.err)
	var node track.Node
	require.NoError(t, json.Unmarshal([]byte(k.out.String()), &node))
	require.Equal(t, "node-1", node.Node.Name)
	require.Equal(t, run.Ready, node.Status.State)
	require.NotContains(t, k.out.String(), "BEGIN AGE", "what is sealed stays out of sight")
}

func testStuck(t *testing.T, c *cluster, s *script) {
	k := newConsole(t, c.address)
	path := lottest.Lot(t, "stuck", 3)
	rename(t, path, "0000-4000-8000", "0002-4000-8000")
	require.Equal(t, exitStuck, k.starter("provision", "--batch", path, "-y"), k.err)
	for _, want := range []string{
		"2 of 3 nodes Ready (2 ready, 1 stuck)",
		"node-2 is stuck in write: the disk S1 reads back other bytes at offset 512",
		"what to do: replace the disk",
		"erased: ",
		"then: `starter retry stuck node-2`, with `--batch LOT.YAML`",
		"or: `starter abort stuck node-2`\n",
	} {
		require.Contains(t, k.out.String(), want)
	}

	// A second lot on the same servers is refused before anything starts.
	other := lottest.Lot(t, "other", 3)
	rename(t, other, "0000-4000-8000", "0002-4000-8000")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("provision", "--batch", other, "-y"))
	require.Contains(t, k.err.String(), "the server of node node-2 is held by the run of node node-2 of lot stuck")
	require.Contains(t, k.err.String(), "starter status stuck")
	require.NotContains(t, k.err.String(), "node-1", "its run has ended")
	requireNoLot(t, c, "other")
	// And so is the same lot again.
	k = k.again()
	require.Equal(t, exitRefused, k.starter("provision", "--batch", path, "-y"))
	require.Equal(t, "starter: lot stuck is at work already, and of its 3 nodes 1 is stuck: node-2 in write (the disk S1 reads back other bytes at offset 512); "+
		"`starter status stuck` says what to do, and then `starter retry stuck node-2`, with --batch LOT.YAML when you have corrected the lot file\n", k.err.String())

	for _, refused := range [][]string{
		{"retry", "stuck", "node-2", "--from", "format"},
		{"retry", "stuck", "node-2", "--from", "wait-ready"},
		{"retry", "stuck", "--stuck", "--from", "wait-ready"},
		{"retry", "stuck", "node-2", "--stuck"},
		{"retry", "stuck"},
		{"retry", "stuck", "node-9"},
		{"retry", "none", "node-2"},
		{"abort", "stuck", "node-1"},
	} {
		k = k.again()
		require.Equal(t, exitRefused, k.starter(refused...), "%v: %s", refused, k.err)
		require.Empty(t, k.out.String())
	}
	k = k.again()
	require.Equal(t, exitStuck, k.starter("status", "stuck"))
	k = k.again()
	require.Equal(t, exitOK, k.starter("__complete", "retry", "stuck", ""))
	require.Contains(t, k.out.String(), "node-2\tstuck\n")

	s.mend("stuck")
	k = k.again()
	require.Equal(t, exitOK, k.starter("retry", "stuck", "--stuck", "--from", "stage", "--reason", "new disk"), k.err)
	require.Equal(t, "node-2 goes on with stage; follow it with `starter status stuck --watch`\n", k.out.String())
	k = k.again()
	require.Equal(t, exitRefused, k.starter("retry", "stuck", "--stuck"))
	require.Contains(t, k.err.String(), "no node of lot stuck is stuck")
	k = k.again()
	require.Equal(t, exitOK, k.starter("status", "stuck", "--watch"), k.err)
	require.Contains(t, k.out.String(), "(2×)", "write took two passes")
}

func testInterrupt(t *testing.T, c *cluster, s *script) {
	k := newConsole(t, c.address)
	path := lottest.Lot(t, "block", 1)
	rename(t, path, "0000-4000-8000", "0003-4000-8000")
	ctx, interrupt := context.WithCancel(t.Context())
	code := make(chan int)
	go func() { code <- k.run(ctx, []string{"provision", "--batch", path, "-y"}) }()
	eventually(t, "the phase is at work", func() bool {
		return s.isBlocked("block") && strings.Contains(k.out.String(), "wait-ssh       simulated step, 25% of 3.7 GiB, 190.7 MiB/s")
	})
	interrupt()
	require.Equal(t, exitInterrupted, <-code)
	require.Contains(t, k.out.String(), "The runs go on. Come back with `starter status block --watch`.")

	k = k.again()
	require.Equal(t, exitOK, k.starter("status", "block", "node-1"), "a node at work is no failure")
	require.Contains(t, k.out.String(), "doing     simulated step")
	k = k.again()
	require.Equal(t, exitOK, k.starter("abort", "block", "node-1"), k.err)
	k = k.again()
	require.Equal(t, exitAborted, k.starter("status", "block", "-w"))
	require.Contains(t, k.out.String(), "0 of 1 nodes Ready (1 aborted)")
}

func testAsking(t *testing.T, c *cluster) {
	path := lottest.Lot(t, "asked", 1)
	rename(t, path, "0000-4000-8000", "0004-4000-8000")
	k := newConsole(t, c.address)
	require.Equal(t, exitRefused, k.starter("provision", "--batch", path))
	require.Contains(t, k.err.String(), "give --yes")
	for _, answer := range []string{"", "y\n", "Asked\n"} {
		k = k.again().types(answer)
		require.Equal(t, exitRefused, k.starter("provision", "--batch", path))
		require.Contains(t, k.out.String(), "Type the lot's name (asked)")
	}
	requireNoLot(t, c, "asked")

	// Somebody who never answers can still leave.
	k = k.again().types("")
	silent, hold := net.Pipe()
	defer func() { _ = hold.Close() }()
	k.stdin = silent
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int)
	go func() { code <- k.run(ctx, []string{"provision", "--batch", path}) }()
	eventually(t, "the question is asked", func() bool { return strings.Contains(k.out.String(), "Type the lot's name") })
	cancel()
	require.Equal(t, exitInterrupted, <-code)
	requireNoLot(t, c, "asked")

	k = k.again().types("asked\n")
	require.Equal(t, exitOK, k.starter("provision", "--batch", path, "--detach"), k.err)
	require.Contains(t, k.out.String(), "lot asked is started; follow it with `starter status asked --watch`")
}

func testRefusals(t *testing.T, c *cluster) {
	path := lottest.Lot(t, "bad", 2)
	rename(t, path, "zone: fr-par-2", "zone: fr-par-9")
	k := newConsole(t, c.address)
	require.Equal(t, exitRefused, k.starter("provision", "--batch", path, "-y"))
	require.True(t, strings.HasPrefix(k.err.String(), path+":4:7: zone: must be a zone with Elastic Metal servers"), k.err.String())
	requireNoLot(t, c, "bad")
	require.NoFileExists(t, filepath.Join(k.vars["IRONLOT_HOME"], "identity.txt"), "no key is made for a bad lot")

	k = k.again()
	require.Equal(t, exitRefused, k.starter("status", "nowhere"))
	require.Contains(t, k.err.String(), `there is no lot "nowhere"`)
	k = k.again()
	k.vars["TEMPORAL_NAMESPACE"] = "nowhere"
	require.Equal(t, exitRefused, k.starter("status"))
	require.Equal(t, `starter: Temporal at `+c.address+` has no namespace "nowhere"; name one that is there with --namespace, TEMPORAL_NAMESPACE or the profile`+"\n", k.err.String())
}

// TestNoWorker: a lot can be started and looked at while no worker runs.
func TestNoWorker(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	k := newConsole(t, c.address)
	path := lottest.Lot(t, "alone", 2)
	require.Equal(t, exitOK, k.starter("provision", "--batch", path, "--yes", "--detach", "-o", "json"), k.err)
	require.Equal(t, `{"lot":"alone","done":"provision","simulated":true}`+"\n", k.out.String())
	k = k.again()
	require.Equal(t, exitOK, k.starter("status", "alone"), k.err)
	require.Contains(t, k.out.String(), "0 of 2 nodes Ready (2 queued)")
	require.Contains(t, k.out.String(), "No worker answers")
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	nobody := testenv.Nobody()
	k := newConsole(t, nobody)
	require.Equal(t, exitUnreachable, k.starter("status"))
	require.Contains(t, k.err.String(), "Temporal does not answer at "+nobody)
}

// rename changes a text of a lot file everywhere.
func rename(t *testing.T, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(data), from)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(data), from, to)), 0o600))
}

// requireNoLot makes sure that a lot was never started.
func requireNoLot(t *testing.T, c *cluster, name string) {
	t.Helper()
	_, err := c.client.DescribeWorkflow(t.Context(), run.LotID(name), "")
	var notFound *serviceerror.NotFound
	require.ErrorAs(t, err, &notFound)
}
