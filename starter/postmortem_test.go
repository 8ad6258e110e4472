package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/internal/run"
)

func TestPostmortemOfExportedHistories(t *testing.T) {
	t.Parallel()
	const dir = "../workflows/testdata/histories/"
	k := newConsole(t, "127.0.0.1:9")
	require.Equal(t, exitOK, k.starter("postmortem", "--from", dir+"ready.json", "--from", dir+"rewinds.json"), k.err.String())
	require.Contains(t, k.out.String(), "# Lot recorded")
	require.Contains(t, k.out.String(), "2 nodes: 2 ready")

	k = k.again()
	page := filepath.Join(t.TempDir(), "report.html")
	require.Equal(t, exitOK, k.starter("postmortem", "--format", "html", "--out", page, "--from", dir+"rewinds.json"), k.err.String())
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<svg")

	k = k.again()
	require.Equal(t, exitOK, k.starter("postmortem", "-o", "json", "--from", dir+"ready.json"), k.err.String())
	require.True(t, json.Valid([]byte(k.out.String())))
}

func TestPostmortemRefusals(t *testing.T) {
	t.Parallel()
	k := newConsole(t, "127.0.0.1:9")
	for _, args := range [][]string{
		{"postmortem"},
		{"postmortem", "lot", "--from", "x.json"},
		{"postmortem", "--from", "/nonexistent.json"},
		{"postmortem", "--from", "../workflows/testdata/histories/lot.json"},
		{"postmortem", "--from", "postmortem.go"},
		{"postmortem", "--format", "pdf", "--from", "x.json"},
	} {
		k = k.again()
		require.Equal(t, exitRefused, k.starter(args...), "%v", args)
		require.NotEmpty(t, k.err.String())
		require.NotContains(t, k.err.String(), "proto")
		require.Empty(t, k.out.String())
	}
}

// TestNoHistory: the error says what the file must be, and how to come by it.
func TestNoHistory(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                      "this is no whole workflow history in JSON",
		"kind: Lot\n":           "this is no whole workflow history in JSON",
		`{"events": [{"eventI`:  "this is no whole workflow history in JSON",
		`{"name": "a package"}`: "does not begin with the workflow's start",
	} {
		file := filepath.Join(t.TempDir(), "some.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		k := newConsole(t, "127.0.0.1:9")
		require.Equal(t, exitRefused, k.starter("postmortem", "--from", file), text)
		require.Contains(t, k.err.String(), says, text)
		require.Contains(t, k.err.String(), "; export a node's run with `temporal workflow show --workflow-id ID -o json > FILE`", text)
		require.NotContains(t, k.err.String(), "syntax error", text)
	}
}

// TestOneFormat: nothing is written where --format and -o contradict each other.
func TestOneFormat(t *testing.T) {
	t.Parallel()
	const from = "--from=../workflows/testdata/histories/ready.json"
	for name, c := range map[string]struct {
		flags  []string
		says   string // refused; empty: written
		begins string
	}{
		"html and json": {[]string{"--format", "html", "-o", "json"}, "--format html and -o json contradict each other; leave out one of the two", ""},
		"md and yaml":   {[]string{"--format", "md", "-o", "yaml"}, "--format md and -o yaml contradict", ""},
		"json and yaml": {[]string{"-o", "yaml", "--format", "json"}, "--format json and -o yaml contradict", ""},
		"json twice":    {[]string{"--format", "json", "-o", "json"}, "", "{"},
		"-o alone":      {[]string{"-o", "yaml"}, "", "---\n"},
		"with a table":  {[]string{"--format", "html", "-o", "table"}, "", "<!doctype html>"},
	} {
		k := newConsole(t, "127.0.0.1:9")
		out := filepath.Join(t.TempDir(), "report")
		code := k.starter(append([]string{"postmortem", from, "--out", out}, c.flags...)...)
		if c.says != "" {
			require.Equal(t, exitRefused, code, name)
			require.Contains(t, k.err.String(), c.says, name)
			require.NoFileExists(t, out, name)
			continue
		}
		require.Equal(t, exitOK, code, name)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, c.begins, strings.ToLower(string(text[:len(c.begins)])), name)
	}
}

// TestAHistoryWithoutEnd: a device is not read until the memory is full.
func TestAHistoryWithoutEnd(t *testing.T) {
	t.Parallel()
	k := newConsole(t, "127.0.0.1:9")
	require.Equal(t, exitRefused, k.starter("postmortem", "--from", "/dev/zero"))
	require.Contains(t, k.err.String(), "is larger than")
}

// TestAReportCommandsNoTerminal: what machines have said is in it.
func TestAReportCommandsNoTerminal(t *testing.T) {
	t.Parallel()
	r := history.Report{Node: run.Node{Name: "worker-1", ServerName: "em\x1b]0;owned\a"}, Problem: &run.Problem{Message: "the disk\x1b[2J\u202eis gone", Tail: "said\x1b[31m\nmore"}}
	var text strings.Builder
	require.NoError(t, writeAs(&text, history.Lot{Name: "lot", Nodes: []history.Report{r}}, "md"))
	require.Contains(t, text.String(), "the disk")
	require.NotContains(t, text.String(), "\x1b")
	require.NotContains(t, text.String(), "\u202e")
	require.Greater(t, strings.Count(text.String(), "\n"), 5, "lines stay lines")
}
