package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
)

// runLab runs a small lab until its first output, and gives what stops it.
func runLab(t *testing.T, c *console, args ...string) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	base := fmt.Sprintf("127.%d.%d.0", 192+rand.IntN(60), rand.IntN(256))
	args = append([]string{"lab", "--base", base, "--servers", "2", "--speed", "2000", "--image-size", "8", "--disk-size", "64"}, args...)
	code := make(chan int, 1)
	go func() { code <- c.run(ctx, args) }()
	require.Eventually(t, func() bool { return c.out.String() != "" }, time.Minute, 10*time.Millisecond)
	return func() int {
		cancel()
		return <-code
	}
}

func TestLabSaysWhatItIsAndWhatToDoNext(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "")
	stop := runLab(t, c)
	dir := filepath.Join(c.vars["IRONLOT_HOME"], "lab")
	for _, says := range []string{"SIMULATED", "lab-2", "source " + dir + "/lab.env", "provision --batch " + dir + "/lot.yaml"} {
		require.Contains(t, c.out.String(), says)
	}
	_, err := lot.Load(filepath.Join(dir, "lot.yaml"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(c.err.String(), "firmware:") }, time.Minute, 10*time.Millisecond, "the consoles are shown")
	require.Equal(t, exitOK, stop())
	require.NoDirExists(t, filepath.Join(dir, "machines"))
}

func TestLabAsJSON(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "")
	dir := filepath.Join(t.TempDir(), "mine")
	stop := runLab(t, c, "-o", "json", "--quiet", "--dir", dir, "--fault", "slow-disk@2")
	var facts labFacts
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &facts))
	require.True(t, facts.Simulated)
	require.Len(t, facts.Servers, 2)
	require.FileExists(t, facts.Environment)
	require.FileExists(t, facts.Lot)
	require.Equal(t, exitOK, stop())
	require.NotContains(t, c.err.String(), "firmware:")
}

// TestLabOfAWholeCluster: the flags reach the lot file, which is one that can
// be rendered.
func TestLabOfAWholeCluster(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "")
	stop := runLab(t, c, "--quiet", "--bootstrap", "--private-network", "--kubernetes")
	l, err := lot.Load(filepath.Join(c.vars["IRONLOT_HOME"], "lab", "lot.yaml"))
	require.NoError(t, err)
	require.True(t, l.Nodes[0].Run.Bootstrap)
	require.Equal(t, run.VLANAuto, l.Nodes[1].Run.VLAN)
	require.Equal(t, "kubeconfig", filepath.Base(l.Kubeconfig))
	_, err = l.Render(t.Context())
	require.NoError(t, err)
	require.Equal(t, exitOK, stop())
}

func TestLabRefuses(t *testing.T) {
	t.Parallel()
	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "mine"), nil, 0o600))
	for says, args := range map[string][]string{
		"no fault":           {"--fault", "meteor"},
		"not there":          {"--fault", "slow-disk@9"},
		"1 to 1000":          {"--servers", "1001"},
		"with --servers 0":   {"--servers", "0"},
		"with --speed 0":     {"--speed", "0"},
		"not a lab's":        {"--dir", foreign},
		"image format":       {"--image-format", "7z"},
		"cannot deliver":     {"--delivered", "windows"},
		"of the kind":        {"--machines", "paper"},
		"loopback":           {"--base", "192.0.2.0"},
		"whole number":       {"--image-size", "1"},
		"cannot hold":        {"--image-data", "999"},
		"takes no arguments": {"extra"},
	} {
		c := newConsole(t, "")
		require.Equal(t, exitRefused, c.starter(append([]string{"lab"}, args...)...), says)
		require.Contains(t, c.err.String(), says)
		require.Empty(t, c.out.String())
		require.NoDirExists(t, filepath.Join(c.vars["IRONLOT_HOME"], "lab"), says)
	}
}
