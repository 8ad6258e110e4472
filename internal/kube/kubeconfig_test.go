package kube_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/kube"
	"github.com/ironlot/ironlot/internal/lab/kubeapi"
)

// file is a kubeconfig as it is written.
type file struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Current    string `yaml:"current-context"`
	Contexts   []struct {
		Name    string            `yaml:"name"`
		Context map[string]string `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string         `yaml:"name"`
		Cluster map[string]any `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string         `yaml:"name"`
		User map[string]any `yaml:"user"`
	} `yaml:"users"`
}

func parse(t *testing.T, data []byte) *file {
	t.Helper()
	f := &file{}
	require.NoError(t, yaml.Unmarshal(data, f))
	return f
}

// edit gives the admin's kubeconfig with a change.
func edit(t *testing.T, api *kubeapi.API, change func(*file)) []byte {
	t.Helper()
	data, err := api.Kubeconfig()
	require.NoError(t, err)
	f := parse(t, data)
	change(f)
	data, err = yaml.Marshal(f)
	require.NoError(t, err)
	return data
}

func TestReadInlinesFiles(t *testing.T) {
	t.Parallel()
	api, dir := server(t), t.TempDir()
	toFile := func(section map[string]any, key string) {
		data, err := base64.StdEncoding.DecodeString(section[key+"-data"].(string))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, key+".pem"), data, 0o600))
		delete(section, key+"-data")
		section[key] = key + ".pem"
	}
	data := edit(t, api, func(f *file) {
		toFile(f.Clusters[0].Cluster, "certificate-authority")
		toFile(f.Users[0].User, "client-certificate")
		toFile(f.Users[0].User, "client-key")
	})
	_, err := kube.Parse(data)
	require.ErrorContains(t, err, "its certificate-authority is a file, which no worker has")

	k, err := kube.Read(data, dir)
	require.NoError(t, err)
	require.Equal(t, api.URL(), k.Server)
	encoded, err := k.Encode()
	require.NoError(t, err)
	_, err = ask(t, encoded)
	require.ErrorIs(t, err, kube.ErrNoNode, "it logs in without the files")
}

func TestEncodeKeepsOneContext(t *testing.T) {
	t.Parallel()
	k, err := kube.Read(edit(t, server(t), func(f *file) {
		f.Users = append(f.Users, f.Users[0])
		f.Users[1].Name, f.Users[1].User = "other", map[string]any{"token": "canary-token-of-another-context"}
		f.Contexts = append(f.Contexts, f.Contexts[0])
		f.Contexts[1].Name, f.Contexts[1].Context = "other", map[string]string{"cluster": "lab", "user": "other"}
	}), "")
	require.NoError(t, err)
	data, err := k.Encode()
	require.NoError(t, err)
	require.NotContains(t, string(data), "canary")
	require.Equal(t, "kubeconfig context admin@lab", fmt.Sprintf("%v", k))
	require.Equal(t, "kubeconfig context admin@lab", fmt.Sprintf("%#v", k))
}

// TestRefusals: each says what and why, and quotes no secret.
func TestRefusals(t *testing.T) {
	t.Parallel()
	api := server(t)
	const canary = "canary-3f9a"
	cluster := func(key string, value any) func(*file) {
		return func(f *file) { f.Clusters[0].Cluster[key] = value }
	}
	user := func(u map[string]any) func(*file) {
		return func(f *file) { f.Users[0].User = u }
	}
	for name, c := range map[string]struct {
		change func(*file)
		want   string
	}{
		"context":  {func(f *file) { f.Current = "none" }, `the current-context "none" of the kubeconfig is none of its contexts; choose one with`},
		"cluster":  {func(f *file) { f.Clusters = nil }, "its cluster or its user is not in the file"},
		"http":     {cluster("server", "http://192.0.2.1:8080"), "its server is no https address without a password"},
		"password": {cluster("server", "https://me:"+canary+"@192.0.2.1:6443"), "its server is no https address without a password"},
		"insecure": {cluster("insecure-skip-tls-verify", true), "insecure-skip-tls-verify would take anybody's word for the node"},
		"proxy":    {cluster("proxy-url", "http://me:"+canary+"@192.0.2.1:3128"), "its proxy-url is not used by the workers"},
		"no CA":    {cluster("certificate-authority-data", base64.StdEncoding.EncodeToString([]byte(canary))), "its certificate-authority is not a certificate"},
		"CA file": {func(f *file) {
			delete(f.Clusters[0].Cluster, "certificate-authority-data")
			cluster("certificate-authority", "/"+canary)(f)
		}, "its certificate-authority names a file that cannot be read"},
		"exec":       {user(map[string]any{"exec": map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": canary, "interactiveMode": "Never"}}), "its user logs in by running a program (exec), which no worker has"},
		"provider":   {user(map[string]any{"auth-provider": map[string]any{"name": "oidc", "config": map[string]string{"id-token": canary}}}), "its user logs in by an auth-provider, which no worker has"},
		"token file": {user(map[string]any{"tokenFile": "/" + canary}), "its tokenFile is a file, which no worker has"},
		"basic":      {user(map[string]any{"username": "me", "password": canary}), "its user logs in by a password, which Kubernetes does not take any more"},
		"nobody":     {user(map[string]any{}), "its user has no client certificate and no token"},
		"key file": {func(f *file) {
			delete(f.Users[0].User, "client-key-data")
			f.Users[0].User["client-key"] = "/" + canary
		}, "its client-key names a file that cannot be read"},
		"foreign key": {func(f *file) { f.Users[0].User["client-key-data"] = base64.StdEncoding.EncodeToString([]byte(canary)) }, "its client certificate and key do not belong together"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := kube.Read(edit(t, api, c.change), t.TempDir())
			require.ErrorContains(t, err, c.want)
			require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
			require.NotContains(t, err.Error(), canary)
			require.Len(t, strings.Split(err.Error(), "\n"), 1)
		})
	}
	_, err := kube.Read([]byte("clusters: ["+canary), "")
	require.ErrorContains(t, err, "the kubeconfig is not readable")
	require.NotContains(t, err.Error(), canary)
}

func TestTokenIsEnough(t *testing.T) {
	t.Parallel()
	_, err := kube.Read(edit(t, server(t), func(f *file) { f.Users[0].User = map[string]any{"token": "a-token"} }), "")
	require.NoError(t, err)
}

func TestExpiredClientCertificate(t *testing.T) {
	t.Parallel()
	expired := time.Now().Add(-time.Hour)
	data, err := server(t).KubeconfigUntil(expired, "admin", "system:masters")
	require.NoError(t, err)
	_, err = kube.Read(data, "")
	require.EqualError(t, err, `kubeconfig context "admin@lab": its client certificate expired at `+expired.UTC().Format(time.RFC3339)+
		"; make a new one with `talosctl kubeconfig`")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}
