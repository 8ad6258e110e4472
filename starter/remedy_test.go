package main

import (
	"html"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
)

// commandsInRemedy is what to do as the agent tells it, who knows neither lot
// nor node.
const commandsInRemedy = "replace the disk, then `starter retry LOT NODE --from reboot-rescue`; or `starter add LOT --batch LOT.YAML`"

// testRemedy holds every form of output to the same remedy, with commands that
// can be typed.
func testRemedy(t *testing.T, c *cluster) {
	const lot = "stuck-told"
	want := run.Remedy(commandsInRemedy, run.Node{Lot: lot, Name: "node-2"})
	k := newConsole(t, c.address)
	path := lottest.Lot(t, lot, 2)
	rename(t, path, "0000-4000-8000", "0013-4000-8000")
	told := func(code int, args ...string) string {
		k = k.again()
		require.Equal(t, code, k.starter(args...), "%v: %s", args, k.err)
		text := strings.NewReplacer("<code>", "`", "</code>", "`").Replace(html.UnescapeString(k.out.String())) // as the page has commands
		require.NotContains(t, text, "LOT NODE", args)
		require.NotContains(t, text, "add LOT", args)
		return text
	}
	require.Contains(t, told(exitStuck, "provision", "--batch", path, "--yes", "-o", "json"), want)
	for _, args := range []string{
		"status stuck-told", "status stuck-told -o json", "status stuck-told -o yaml", "status stuck-told --watch", "status stuck-told --watch -o json",
		"status stuck-told node-2", "status stuck-told node-2 -o json", "status stuck-told node-2 -o yaml",
	} {
		require.Contains(t, told(exitStuck, strings.Fields(args)...), want, args)
	}
	for _, format := range []string{"md", "html", "json", "yaml"} {
		require.Contains(t, told(exitOK, "postmortem", lot, "--format", format), want, format)
	}
	told(exitOK, "lots", "-o", "json")
	told(exitOK, "inventory", "-o", "json")
}
