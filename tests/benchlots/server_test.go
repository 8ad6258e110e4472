//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ironlot/ironlot/internal/devserver"
)

// write makes an empty file, with its directory.
func write(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, nil, 0o700))
}

func TestServerIsRefused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]options{
		`there is no server "mysql"; give -server sqlite or -server postgres`: {server: "mysql"},
		"Temporal cannot have 0 history shards; give -shards 1 or more":       {server: "postgres"},
		"build it with `make temporal-server`":                                {server: "postgres", shards: 4, bin: t.TempDir()},
	} {
		_, err := o.temporal()
		require.ErrorContains(t, err, want)
	}
}

func TestPostgresIsFound(t *testing.T) {
	bin, root := t.TempDir(), t.TempDir()
	t.Setenv("PATH", t.TempDir())
	write(t, filepath.Join(bin, "temporal-server"))
	_, err := findPrograms(bin, root)
	require.ErrorContains(t, err, "temporal-sql-tool")
	write(t, filepath.Join(bin, "temporal-sql-tool"))
	_, err = findPrograms(bin, root)
	require.ErrorContains(t, err, "install Debian's package postgresql")

	write(t, filepath.Join(os.Getenv("PATH"), "initdb"))
	p, err := findPrograms(bin, root)
	require.NoError(t, err)
	require.Equal(t, os.Getenv("PATH"), p.postgres)

	for _, version := range []string{"9.6", "15", "17"} {
		write(t, filepath.Join(root, version, "bin", "initdb"))
	}
	p, err = findPrograms(bin, root)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "17", "bin"), p.postgres, "the newest")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	require.NoError(t, writeSettings(state, 7233, "/a: b", 512))
	text, err := os.ReadFile(filepath.Join(state, "bench.yaml"))
	require.NoError(t, err)
	var got struct {
		Persistence struct {
			NumHistoryShards int `yaml:"numHistoryShards"`
			Datastores       map[string]struct {
				SQL struct {
					Database   string            `yaml:"databaseName"`
					Attributes map[string]string `yaml:"connectAttributes"`
				}
			}
		}
		Services map[string]struct{ RPC map[string]any }
		Dynamic  struct{ Filepath string } `yaml:"dynamicConfigClient"`
	}
	require.NoError(t, yaml.Unmarshal(text, &got))
	require.Equal(t, 512, got.Persistence.NumHistoryShards)
	for store, database := range map[string]string{"default": "temporal", "visibility": "temporal_visibility"} {
		require.Equal(t, database, got.Persistence.Datastores[store].SQL.Database)
		require.Equal(t, "/a: b", got.Persistence.Datastores[store].SQL.Attributes["host"])
	}
	require.Equal(t, 7233, got.Services["frontend"].RPC["grpcPort"])

	text, err = os.ReadFile(got.Dynamic.Filepath)
	require.NoError(t, err)
	var dynamic map[string][]struct{ Value any }
	require.NoError(t, yaml.Unmarshal(text, &dynamic))
	require.Equal(t, 8096, dynamic["history.hostLevelCacheMaxSize"][0].Value)
	for _, setting := range devserver.DynamicConfig() {
		key, _, _ := strings.Cut(setting, "=")
		require.Len(t, dynamic[key], 1, key)
	}
}

// TestFamily: a child's use counts while it runs and when it has ended.
func TestFamily(t *testing.T) {
	t.Parallel()
	const burn = `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`
	cmd := exec.Command("sh", "-c", "sh -c '"+burn+"; echo; read x'; echo; read x")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	next := func() {
		_, err := out.Read(make([]byte, 1))
		require.NoError(t, err)
	}

	next()
	alone, err := timesOf(cmd.Process.Pid)
	require.NoError(t, err)
	require.Len(t, children(cmd.Process.Pid), 1)
	running, memory, err := family(cmd.Process.Pid, true)
	require.NoError(t, err)
	require.Greater(t, running, alone.own+alone.reaped)
	own, err := memoryOf(cmd.Process.Pid, "smaps_rollup", "Pss:")
	require.NoError(t, err)
	require.Greater(t, memory, own)

	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	next()
	require.Empty(t, children(cmd.Process.Pid))
	ended, memory, err := family(cmd.Process.Pid, false)
	require.NoError(t, err)
	require.GreaterOrEqual(t, ended, running)
	require.Zero(t, memory, "it was not asked for")
}
