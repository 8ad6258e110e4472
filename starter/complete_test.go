package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
)

// TestCompletion: flags of a closed set offer it, and no file where none
// belongs.
func TestCompletion(t *testing.T) {
	t.Parallel()
	file := lottest.Lot(t, "rack-7", 2)
	for line, want := range map[string]string{
		"status -o ":                               "table wide json yaml :4",
		"retry a b --from ":                        strings.ReplaceAll(phaseList(), ",", "") + " :4",
		"postmortem --format ":                     "html md json yaml :4",
		"lab --machines ":                          "simulated qemu :4",
		"lab --delivered ":                         "raid1 lvm many blank :4",
		"provision --batch ":                       "yaml yml :8",
		"validate ":                                "yaml yml :8",
		"provision --batch " + file + " --node ":   "node-1 node-2 :4",
		"provision --batch " + file + " --node a,": "a,node-1 a,node-2 :4",
		"completion ":                              "bash fish powershell zsh :4",
		"pause a ":                                 ":4",
	} {
		k := newConsole(t, "127.0.0.1:9")
		require.Equal(t, exitOK, k.starter(append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(line, " ")...)...), line)
		require.Equal(t, want, strings.Join(strings.Fields(k.out.String()), " "), line)
	}
}

// TestFlagsComplete: a flag with a value says what completes it, if it is no
// file of any kind.
func TestFlagsComplete(t *testing.T) {
	t.Parallel()
	anyFile := map[string]bool{"ssh-key": true, "temporal": true, "out": true, "qemu-talosinit": true}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, known := c.GetFlagCompletionFunc(f.Name)
			_, directory := f.Annotations[cobra.BashCompSubdirsInDir]
			_, kind := f.Annotations[cobra.BashCompFilenameExt]
			if f.Value.Type() != "bool" && !anyFile[f.Name] {
				require.True(t, known || directory || kind, "%s --%s", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newConsole(t, "").root())
}
