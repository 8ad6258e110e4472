package lot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/run"
)

// good is a lot file without a mistake.
const good = `apiVersion: ironlot.dev/v1
kind: Lot
name: rack-1
zone: fr-par-2
image:
  url: https://images.example/metal-amd64.raw.zst
  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF
cluster:
  talosconfig: talosconfig
defaults:
  config: worker.yaml
  patches: [all.yaml]
  systemDisk: {smallest: true}
nodes:
  - name: cp-1
    server: {id: 11111111-2222-4333-8444-55555555550A, name: metal-1}
    config: cp.yaml
    patches: [cp-1.yaml]
    timeouts: {write: 45m}
  - name: worker-1
    server: {id: 11111111-2222-4333-8444-555555555502, name: metal-2}
    systemDisk: {minSize: 400GB, maxSize: 1TiB}
    secondaryDisks: keep
    reprovision: true
    rescue: {fresh: true}
`

// folder makes a directory with the files that the lots of the tests name.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"talosconfig", "kubeconfig", "worker.yaml", "controlplane.yaml", "cp.yaml", "all.yaml", "cp-1.yaml", "longhorn.yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x: y\n"), 0o600))
	}
	return dir
}

// load parses a lot file's text in a folder of its own.
func load(t *testing.T, text string) (*lot.Lot, string, error) {
	t.Helper()
	dir := folder(t)
	path := filepath.Join(dir, "lot.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	l, err := lot.Load(path)
	return l, dir, err
}

func TestLoad(t *testing.T) {
	t.Parallel()
	l, dir, err := load(t, good)
	require.NoError(t, err)
	require.Empty(t, l.Warnings)
	require.Equal(t, "rack-1", l.Name)
	require.Equal(t, filepath.Join(dir, "talosconfig"), l.Talosconfig)
	require.Len(t, l.Nodes, 2)

	cp := l.Nodes[0]
	require.Equal(t, filepath.Join(dir, "cp.yaml"), cp.Config)
	require.Equal(t, []string{filepath.Join(dir, "all.yaml"), filepath.Join(dir, "cp-1.yaml")}, cp.Patches)
	require.Equal(t, run.Node{
		Lot: "rack-1", Name: "cp-1", Provider: "scaleway", Zone: "fr-par-2",
		ServerID: "11111111-2222-4333-8444-55555555550a", ServerName: "metal-1",
		Image: run.Image{
			URL:    "https://images.example/metal-amd64.raw.zst",
			SHA256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		},
		Disks:  run.DiskPolicy{System: run.DiskChoice{Smallest: true}, Secondary: run.Blank},
		Rescue: run.Rescue{Port: 22}, TalosPort: 50000,
		Timeouts: run.Timeouts{Write: 45 * time.Minute},
		Boot:     run.BootPolicy{Reboots: 2, PowerCycles: 1},
	}, cp.Run)

	worker := l.Nodes[1]
	require.Equal(t, filepath.Join(dir, "worker.yaml"), worker.Config)
	require.Equal(t, run.DiskPolicy{System: run.DiskChoice{MinSize: 400e9, MaxSize: 1 << 40}, Secondary: run.Keep}, worker.Run.Disks)
	require.True(t, worker.Run.Reprovision)
	require.Equal(t, run.Rescue{Port: 22, Fresh: true}, worker.Run.Rescue)
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(*lot.Lot){
		"scaleway.yaml": func(l *lot.Lot) { require.False(t, l.Lab) },
		"lab.yaml": func(l *lot.Lot) {
			require.True(t, l.Lab)
			require.Equal(t, run.Timeouts{RescueBoot: 2 * time.Minute, NormalBoot: 2 * time.Minute, Ready: 5 * time.Minute}, l.Nodes[0].Run.Timeouts)
			require.Equal(t, 2*time.Minute, l.Nodes[1].Run.Timeouts.Ready)
		},
	} {
		data, err := os.ReadFile(filepath.Join("../../examples", name))
		require.NoError(t, err)
		l, _, err := load(t, string(data))
		require.NoError(t, err, name)
		require.Len(t, l.Nodes, 3)
		check(l)
		require.NoError(t, validator(t)(data), name)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	text := strings.Replace(good, "  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF\n", "", 1)
	text = strings.Replace(text, "raw.zst", "raw.zst?token=x", 1)
	text = strings.Replace(text, "rescue: {fresh: true}", "rescue: {port: 2222}", 1)
	l, _, err := load(t, text)
	require.NoError(t, err)
	require.Len(t, l.Warnings, 3)
	require.Contains(t, strings.Join(l.Warnings, "\n"), "has no digest")
	require.NotContains(t, strings.Join(l.Warnings, "\n"), "token")
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	validate := validator(t)
	for _, c := range mistakes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := c.text
			if text == "" {
				require.Contains(t, good, c.old)
				text = strings.Replace(good, c.old, c.new, 1)
			}
			l, dir, err := load(t, text)
			require.Error(t, err)
			require.Nil(t, l)
			var problems lot.Problems
			require.True(t, errors.As(err, &problems))
			got := strings.ReplaceAll(err.Error(), dir+"/", "")
			require.Equal(t, strings.Join(c.want, "\n"), got)
			if c.schema {
				require.Error(t, validate([]byte(text)), "the schema accepts it")
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := lot.Load(filepath.Join(dir, "none.yaml"))
	require.EqualError(t, err, filepath.Join(dir, "none.yaml")+": the file does not exist; check the path")
	_, err = lot.Load(dir)
	require.EqualError(t, err, dir+": is not a regular file; name a file")
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, _, err := load(t, good+strings.Repeat("# padding\n", lot.MaxBytes/10+1))
	require.ErrorContains(t, err, "is larger than 1024 KiB")

	node := "  - name: n\n    server: {id: 11111111-2222-4333-8444-555555555502, name: m}\n"
	_, _, err = load(t, strings.Replace(good, "nodes:\n", "nodes:\n"+strings.Repeat(node, lot.MaxNodes), 1))
	require.ErrorContains(t, err, "lot.yaml:14:1: nodes: names 1002 servers, and a lot holds at most 1000; split it")
}

// A small file whose aliases multiply must end quickly.
func TestAliasBomb(t *testing.T) {
	t.Parallel()
	list := "[" + strings.Repeat("x,", 1000) + "x]"
	text := strings.Replace(good, "patches: [all.yaml]", "patches: &p "+list, 1) +
		strings.Repeat("  - {patches: *p}\n", 900)
	_, _, err := load(t, text)
	require.ErrorContains(t, err, "the file repeats too much through aliases")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	for _, c := range mistakes() {
		f.Add([]byte(c.text))
		f.Add([]byte(strings.Replace(good, c.old, c.new, 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := lot.Parse("/nowhere/lot.yaml", data)
		if (l == nil) == (err == nil) {
			t.Fatalf("lot %v and error %v", l, err)
		}
		if problems := (lot.Problems{}); err != nil && (!errors.As(err, &problems) || len(problems) == 0) {
			t.Fatalf("not a list of problems: %v", err)
		}
	})
}

// TestOnlyNamesFewNodes: the error of a large lot stays a sentence.
func TestOnlyNamesFewNodes(t *testing.T) {
	t.Parallel()
	l, err := lot.Load(lottest.Lot(t, "large", 40))
	require.NoError(t, err)
	err = l.Only([]string{"nope"})
	require.Equal(t, 20, strings.Count(err.Error(), "node-"))
	require.True(t, strings.HasSuffix(err.Error(), ", and 20 more"), err)
}

func TestOnly(t *testing.T) {
	t.Parallel()
	names := func(l *lot.Lot) []string {
		var all []string
		for _, n := range l.Nodes {
			all = append(all, n.Run.Name)
		}
		return all
	}
	l, err := lot.Load(lottest.Lot(t, "some", 3))
	require.NoError(t, err)
	require.ErrorContains(t, l.Only([]string{"node-1", "node-7"}), `has no node "node-7"; name one of node-1, node-2, node-3`)
	require.Len(t, l.Nodes, 3)
	require.NoError(t, l.Only([]string{"node-3", "node-1"}))
	require.Equal(t, []string{"node-1", "node-3"}, names(l), "in the file's order")
	_, err = l.Render(t.Context())
	require.NoError(t, err)
}

func TestEmptyDocumentsAtTheEnd(t *testing.T) {
	t.Parallel()
	path := lottest.Lot(t, "some", 1)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, end := range []string{"---\n", "---\n---\n", "...\n", "---\n# the end\n"} {
		_, err := lot.Parse(path, append(data[:len(data):len(data)], end...))
		require.NoError(t, err, end)
	}
}
