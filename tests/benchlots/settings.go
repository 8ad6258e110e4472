//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/testenv"
)

// settings are the least that Temporal's server starts with. The connections
// are as many as Temporal's own configuration for PostgreSQL gives
// (config/development-postgres12.yaml). The attribute host is the directory of
// the socket; connectAddr gives its port. Of the two hosts lib/pq takes what
// sorts last (ParseURL, v1.10.9), and "-" sorts before any path.
const settings = `log: {stdout: true, level: warn}
persistence:
  numHistoryShards: {{.Shards}}
  defaultStore: default
  visibilityStore: visibility
  datastores:
    default:
      sql: &sql
        pluginName: postgres12
        databaseName: temporal
        user: {{.User}}
        connectAddr: "-:5432"
        connectProtocol: tcp
        connectAttributes: {host: {{printf "%q" .Socket}}}
        maxConns: 20
        maxIdleConns: 20
        maxConnLifetime: 1h
    visibility:
      sql:
        <<: *sql
        databaseName: temporal_visibility
        maxConns: 2
        maxIdleConns: 2
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}
services:
  frontend: {rpc: {grpcPort: {{.Port}}, membershipPort: {{call .Free}}, bindOnLocalHost: true}}
  history: {rpc: {grpcPort: {{call .Free}}, membershipPort: {{call .Free}}, bindOnLocalHost: true}}
  matching: {rpc: {grpcPort: {{call .Free}}, membershipPort: {{call .Free}}, bindOnLocalHost: true}}
  worker: {rpc: {grpcPort: {{call .Free}}, membershipPort: {{call .Free}}, bindOnLocalHost: true}}
clusterMetadata:
  enableGlobalNamespace: false
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "127.0.0.1:{{.Port}}"}
dcRedirectionPolicy: {policy: noop}
dynamicConfigClient: {filepath: {{printf "%q" .Dynamic}}, pollInterval: 1m}
`

// dynamicSettings are those that `starter up` has: built into the dev server of
// Temporal's CLI 1.5.1 (temporalcli/commands.server.go and
// temporalcli/devserver/server.go), and what package devserver adds or changes.
func dynamicSettings() string {
	all := append([]string{
		"frontend.persistenceMaxQPS=10000",
		"history.persistenceMaxQPS=45000",
		"history.hostLevelCacheMaxSize=8096",
		"frontend.namespaceRPS.visibility=100",
	}, devserver.DynamicConfig()...)
	var text strings.Builder
	for _, setting := range all {
		key, value, _ := strings.Cut(setting, "=")
		fmt.Fprintf(&text, "%s: [{value: %s}]\n", key, value)
	}
	return text.String()
}

// writeSettings writes the server's configuration, bench.yaml, and its dynamic
// configuration.
func writeSettings(state string, port int, socket string, shards int) error {
	dynamic := filepath.Join(state, "dynamic.yaml")
	t, err := template.New("").Parse(settings)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	err = t.Execute(&text, map[string]any{
		"Port": port, "Socket": socket, "User": superuser, "Shards": shards, "Dynamic": dynamic, "Free": testenv.Port,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(state, "bench.yaml"), text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.WriteFile(dynamic, []byte(dynamicSettings()), 0o600)
}
