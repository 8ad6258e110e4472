package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

func TestCommandLineMistakes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"nonsense"}, {"provision", "--no-such-flag"}, {"provision", "lot.yaml"}, {"provision"}, {"validate"},
		{"status", "a", "b", "c"}, {"status", "--watch"}, {"retry", "a"}, {"abort"}, {"version", "-o", "xml"},
	} {
		k := newConsole(t, "127.0.0.1:9")
		require.Equal(t, exitRefused, k.starter(args...), args)
		require.Equal(t, 1, strings.Count(k.err.String(), "\n"), "one sentence for %v: %s", args, k.err)
		require.Empty(t, k.out.String())
	}
}

// TestFilesInTheWrongPlace: who gives a file where none belongs is told what was
// meant.
func TestFilesInTheWrongPlace(t *testing.T) {
	t.Parallel()
	file := lottest.Lot(t, "rack-7", 1)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"provision", file}, "it is named by a flag: `starter provision --batch " + file + "`; `starter provision --help`"},
		{[]string{"provision", "rack-7"}, "takes no arguments, and \"rack-7\" is one: the lot file is named by --batch"},
		{[]string{"add", file}, "`starter add rack-7 --batch " + file + "`"},
		{[]string{"add", "rack-7", file}, "`starter add rack-7 --batch " + file + "`"},
		{[]string{"add", "none.yaml"}, "`starter add LOT --batch none.yaml`"},
		{[]string{"retry", "rack-7", "node-1", file}, "`starter retry rack-7 node-1 --batch " + file + "`"},
		{[]string{"validate", "--batch", file}, "named without a flag: `starter validate LOT.YAML`"},
		{[]string{"status", file}, "a lot goes by its name: `starter status rack-7`"},
		{[]string{"abort", file, "node-1"}, "`starter abort rack-7 node-1`"},
		{[]string{"postmortem", "exported.json"}, "`starter postmortem --from exported.json`"},
		{[]string{file}, "check it with `starter validate " + file + "`, install its servers with `starter provision --batch " + file + "`"},
		{[]string{"help", "stauts"}, "did you mean `starter status`"},
		{[]string{"keys", "crate"}, "did you mean `starter keys create`"},
		{[]string{"completion", "bsh"}, "did you mean `starter completion bash`"},
	} {
		k := newConsole(t, "127.0.0.1:9")
		require.Equal(t, exitRefused, k.starter(c.args...), c.args)
		require.Contains(t, k.err.String(), c.want)
		require.Equal(t, 1, strings.Count(k.err.String(), "\n"), "one sentence for %v: %s", c.args, k.err)
		require.Empty(t, k.out.String())
	}
}

func TestHelpTellsExitCodes(t *testing.T) {
	t.Parallel()
	k := newConsole(t, "")
	require.Equal(t, exitOK, k.starter("--help"))
	for _, code := range []int{exitOK, exitFailed, exitRefused, exitStuck, exitAborted, exitUnreachable, exitInterrupted} {
		require.Contains(t, k.out.String(), fmt.Sprintf("\n  %3d  ", code))
	}
	for _, command := range []string{"up", "provision", "status", "retry", "abort", "validate", "schema", "postmortem", "lab", "keys", "completion", "version"} {
		require.Contains(t, k.out.String(), "\n  "+command+" ")
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("x"), exitFailed},
		{fault.Retry("x"), exitFailed},
		{fmt.Errorf("y: %w", fault.Operator("", "x")), exitRefused},
		{lot.Problems{{Message: "x"}}, exitRefused},
		{&track.NotFoundError{Lot: "x"}, exitRefused},
		{&exitError{code: exitStuck}, exitStuck},
	} {
		require.Equal(t, c.want, exitCode(c.err), "%v", c.err)
	}
	nodes := func(states ...run.State) (l track.Lot) {
		for _, s := range states {
			l.Nodes = append(l.Nodes, track.Node{State: s})
		}
		return l
	}
	require.Equal(t, exitOK, exitCode(outcome(nodes(run.Ready, run.Running, run.Queued))))
	require.Equal(t, exitAborted, exitCode(outcome(nodes(run.Ready, run.Refused))))
	require.Equal(t, exitStuck, exitCode(outcome(nodes(run.Aborted, run.Stuck, run.Ready))))
}

func TestValidate(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "fine", 2)
	k := newConsole(t, "127.0.0.1:9")
	require.Equal(t, exitOK, k.starter("validate", path), k.err)
	require.Equal(t, path+" is fine: lot fine, 2 nodes\n", k.out.String())
	require.Contains(t, k.err.String(), "warning: the image has no digest")
	require.NoDirExists(t, k.vars["IRONLOT_HOME"], "nothing is kept")

	rename(t, path, "name: fine", "nmae: fine")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("validate", path))
	require.Contains(t, k.err.String(), path+":3:1: nmae: is not a key here; did you mean name?")
	require.Regexp(t, `(?s)^\S+lot.yaml:.*\n\S+lot.yaml:3:1: nmae: .*\nwarning: the image has no digest[^\n]*\n$`, k.err.String(), "mistakes first, then warnings")
	k = k.again()
	require.Equal(t, exitRefused, k.starter("validate", path, "-o", "json"))
	var verdict verdict
	require.NoError(t, json.Unmarshal([]byte(k.out.String()), &verdict))
	require.False(t, verdict.Valid)
	require.Len(t, verdict.Problems, 2)
	require.Len(t, verdict.Warnings, 1)
	require.Empty(t, k.err.String())
}

func TestSchemaAndVersion(t *testing.T) {
	t.Parallel()
	k := newConsole(t, "")
	require.Equal(t, exitOK, k.starter("schema"))
	require.Equal(t, string(lot.Schema()), k.out.String())
	k = k.again()
	require.Equal(t, exitOK, k.starter("version"))
	require.True(t, strings.HasPrefix(k.out.String(), "ironlot starter "))
	k = k.again()
	require.Equal(t, exitOK, k.starter("version", "-o", "json"))
	require.Regexp(t, `^\{"program":"starter","version":".+","go":"go1.+","os":".+","arch":".+"\}\n$`, k.out.String())
	k = k.again()
	require.Equal(t, exitOK, k.starter("schema", "-o", "yaml"))
	require.Contains(t, k.out.String(), "---\n$schema: ")
	k = k.again()
	require.Equal(t, exitOK, k.starter("completion", "bash"))
	require.Contains(t, k.out.String(), "starter")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	k := newConsole(t, "")
	require.Equal(t, exitOK, k.starter("keys", "create"), k.err)
	key := k.out.String()
	require.True(t, strings.HasPrefix(key, "age1"))
	identity, err := os.ReadFile(filepath.Join(k.vars["IRONLOT_HOME"], "identity.txt"))
	require.NoError(t, err)
	require.Contains(t, string(identity), "AGE-SECRET-KEY-")
	for _, args := range [][]string{{"keys"}, {"keys", "show"}, {"keys", "create"}} {
		k = k.again()
		require.Equal(t, exitOK, k.starter(args...))
		require.Equal(t, key, k.out.String(), "the identity is made once")
		require.NotContains(t, k.out.String()+k.err.String(), "AGE-SECRET-KEY-")
	}

	k = k.again()
	k.vars["IRONLOT_RECIPIENTS"] = "nonsense"
	require.Equal(t, exitRefused, k.starter("keys"))
}
