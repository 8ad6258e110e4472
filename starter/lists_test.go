package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// testLists: what is said about lots and servers afterwards.
func testLists(t *testing.T, c *cluster) {
	k := newConsole(t, c.address)
	k.vars["IRONLOT_WEB_UI"] = "http://ui.example/"
	path := lottest.Lot(t, "stuck-listed", 3)
	rename(t, path, "0000-4000-8000", "0006-4000-8000")
	require.Equal(t, exitRefused, k.starter("provision", "--batch", path, "-y", "--node", "node-9"))
	require.Contains(t, k.err.String(), `has no node "node-9"`)
	k = k.again()
	require.Equal(t, exitStuck, k.starter("provision", "--batch", path, "-y", "--node", "node-2,node-3"), k.err)
	require.NotContains(t, k.out.String(), "node-1")

	var l track.Summary
	eventually(t, "the lists know how the lot stands", func() bool {
		l, _ = find(t, k.again(), "lots", func(l track.Summary) bool { return l.Lot == "stuck-listed" })
		return l.Counts.Ready == 1 && l.Counts.Stuck == 1
	})
	require.Equal(t, run.Stuck, l.State)
	require.Equal(t, 2, l.Nodes)
	require.True(t, l.Simulated)
	require.Equal(t, "node-2", l.Stuck.Node)
	require.Contains(t, l.Stuck.Reason, "reads back other bytes")
	k = k.again()
	require.Equal(t, exitOK, k.starter("status"))
	require.Contains(t, strings.Join(strings.Fields(k.out.String()), " "), "stuck-listed stuck 1/2")

	i, ok := find(t, k.again(), "inventory stuck-listed", func(track.Item) bool { return true })
	require.True(t, ok)
	require.Equal(t, "node-3", i.Node)
	require.Equal(t, "metal-3", i.Server)
	require.NotEmpty(t, i.RunID)
	k = k.again()
	require.Equal(t, exitRefused, k.starter("inventory", "nowhere"))
	for args, want := range map[string]string{
		"status stuck-listde":        "there is no lot \"stuck-listde\"; did you mean stuck-listed? `starter status` lists the lots",
		"status stuck-listed node3":  `lot stuck-listed has no node "node3"; did you mean node-3? Otherwise name one of node-2, node-3`,
		"status stuck-listed router": `lot stuck-listed has no node "router"; name one of node-2, node-3`,
	} {
		k = k.again()
		require.Equal(t, exitRefused, k.starter(strings.Fields(args)...))
		require.Contains(t, k.err.String(), want)
	}
	k = k.again()
	require.Equal(t, exitOK, k.starter("inventory", "-o", "wide"))
	require.Contains(t, k.out.String(), i.RunID)
	require.Contains(t, k.out.String(), "SIMULATED")

	for args, want := range map[string]string{
		"ui":                      `http://ui.example/namespaces/default/workflows?query=WorkflowType+%3D+%22ProvisionNode%22+AND+IronlotState+%3D+%22stuck%22`,
		"ui stuck-listed":         `http://ui.example/namespaces/default/workflows/lot%2Fstuck-listed/` + l.RunID + `/user-metadata`,
		"ui stuck-listed --stuck": `http://ui.example/namespaces/default/workflows?query=WorkflowType+%3D+%22ProvisionNode%22+AND+IronlotLot+%3D+%22stuck-listed%22+AND+IronlotState+%3D+%22stuck%22`,
		"ui stuck-listed --all":   `http://ui.example/namespaces/default/workflows?query=WorkflowType+%3D+%22ProvisionNode%22+AND+IronlotLot+%3D+%22stuck-listed%22`,
		"ui stuck-listed node-2": "http://ui.example/namespaces/default/workflows/provision%2Fscaleway%2F" +
			"00000000-0006-4000-8000-000000000002/" + l.Stuck.RunID + "/user-metadata",
	} {
		k = k.again()
		require.Equal(t, exitOK, k.starter(strings.Fields(args)...), k.err)
		require.Equal(t, want+"\n", k.out.String())
	}
	k = k.again()
	require.Equal(t, exitOK, k.starter("ui", "stuck-listed", "node-2", "-o", "json"), k.err)
	require.Contains(t, k.out.String(), `{"url":"http://ui.example/namespaces/default/workflows/provision`)
	k = k.again()
	delete(k.vars, "IRONLOT_WEB_UI")
	require.Equal(t, exitRefused, k.starter("ui"))
}

// find gives the first object of a command's JSON that is wanted.
func find[T any](t *testing.T, k *console, command string, want func(T) bool) (T, bool) {
	t.Helper()
	require.Equal(t, exitOK, k.starter(append(strings.Fields(command), "-o", "json")...), k.err)
	for line := range strings.Lines(k.out.String()) {
		var v T
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		if want(v) {
			return v, true
		}
	}
	var none T
	return none, false
}
