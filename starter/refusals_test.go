package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// TestNodesWhoseRunsHaveEnded: one sentence, with advice for what was asked.
func TestNodesWhoseRunsHaveEnded(t *testing.T) {
	t.Parallel()
	const provision = " with `starter provision --batch LOT.YAML --node node-1`"
	for name, c := range map[string]struct {
		state  run.State
		update string
		open   bool
		want   string
	}{
		"retry ready":     {run.Ready, run.UpdateRetry, false, "retry refused: node node-1 is Ready, and its run has ended; to install it again, set `reprovision: true` for it in the lot file and provision it" + provision},
		"retry aborted":   {run.Aborted, run.UpdateRetry, true, "retry refused: node node-1 is aborted, and its run has ended; to install it again, provision it" + provision + " once lot rack-1 has ended"},
		"retry refused":   {run.Refused, run.UpdateRetry, false, "retry refused: node node-1 was refused and never started (taken); provision it" + provision},
		"abort ready":     {run.Ready, run.UpdateAbort, false, "abort refused: node node-1 is Ready, and its run has ended; there is nothing left to abort"},
		"abort aborted":   {run.Aborted, run.UpdateAbort, true, "abort refused: node node-1 is aborted, and its run has ended; there is nothing left to abort"},
		"abort refused":   {run.Refused, run.UpdateAbort, false, "abort refused: node node-1 was refused and never started (taken); there is nothing left to abort"},
		"abort one stuck": {run.Stuck, run.UpdateAbort, true, ""},
	} {
		n := track.Node{Node: run.Node{Name: "node-1"}, State: c.state, Reason: "taken"}
		err := steerable(track.Lot{Name: "rack-1", Open: c.open}, n, c.update)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.EqualError(t, err, c.want, name)
	}
}

// TestRefusedBeforeAnythingIsAsked: Temporal is not needed to say so.
func TestRefusedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	file := lottest.Lot(t, "rack-1", 2)
	for want, c := range map[string]struct {
		args []string
		env  string // IRONLOT_WEB_UI
	}{
		"--watch needs one lot; name the lot":                              {args: []string{"status", "--watch"}},
		"--watch shows a whole lot; leave out the node":                    {args: []string{"status", "rack-1", "node-1", "-w"}},
		`has no node "nope"; name one of node-1, node-2`:                   {args: []string{"provision", "--batch", file, "--node", "nope"}},
		`--web-ui "foo" is no http or https address; give one such as`:     {args: []string{"ui", "rack-1", "--web-ui", "foo"}},
		`--web-ui "file:///etc/passwd" is no http or https address`:        {args: []string{"ui", "--web-ui", "file:///etc/passwd"}},
		`--web-ui "http://" is no http or https address`:                   {args: []string{"ui", "--web-ui", "http://"}},
		`IRONLOT_WEB_UI "localhost:8233" is no http or https address; giv`: {args: []string{"ui"}, env: "localhost:8233"},
	} {
		k := newConsole(t, testenv.Nobody())
		if c.env != "" {
			k.vars["IRONLOT_WEB_UI"] = c.env
		}
		require.Equal(t, exitRefused, k.starter(c.args...), want)
		require.Contains(t, k.err.String(), want)
		require.Empty(t, k.out.String())
	}
}
