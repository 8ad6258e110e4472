package talos_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/talos"
)

func talosconfig(t *testing.T, c *talosnode.Cluster) *talos.ClientConfig {
	t.Helper()
	cfg, err := talos.ParseTalosconfig(c.Talosconfig, "")
	require.NoError(t, err)
	return cfg
}

func TestParseTalosconfig(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	cfg := talosconfig(t, c)
	require.Equal(t, "lab", cfg.Context)
	require.True(t, cfg.Admin())
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		require.Equal(t, "talosconfig context lab", fmt.Sprintf(verb, cfg), "printing shows no key")
	}

	data, err := c.TalosconfigFor(role.Reader)
	require.NoError(t, err)
	reader, err := talos.ParseTalosconfig(data, "lab")
	require.NoError(t, err)
	require.False(t, reader.Admin())
	require.Equal(t, []string{"os:reader"}, reader.Roles)
}

func TestTalosconfigMistakes(t *testing.T) {
	t.Parallel()
	good, err := clientconfig.FromBytes(cluster(t).Talosconfig)
	require.NoError(t, err)
	other, err := talosnode.NewCluster("other", "https://192.0.2.20:6443")
	require.NoError(t, err)
	foreign, err := clientconfig.FromBytes(other.Talosconfig)
	require.NoError(t, err)

	change := func(f func(*clientconfig.Context)) []byte {
		ctx := *good.Contexts["lab"]
		f(&ctx)
		data, err := (&clientconfig.Config{Context: "lab", Contexts: map[string]*clientconfig.Context{"lab": &ctx}}).Bytes()
		require.NoError(t, err)
		return data
	}
	for name, tc := range map[string]struct {
		data    []byte
		context string
		want    string
	}{
		"not YAML":      {[]byte("contexts: ["), "", "is not readable"},
		"empty":         {nil, "", "is not readable"},
		"no context":    {change(func(*clientconfig.Context) {}), "prod", `has no context "prod"; name one of its contexts: lab`},
		"no key":        {change(func(c *clientconfig.Context) { c.Key = "" }), "", "ca, crt and key are needed"},
		"not base64":    {change(func(c *clientconfig.Context) { c.Key = "%" + c.Key }), "", "key is not base64"},
		"no pair":       {change(func(c *clientconfig.Context) { c.Key = foreign.Contexts["other"].Key }), "", "crt and key do not belong together"},
		"other CA":      {change(func(c *clientconfig.Context) { c.CA = foreign.Contexts["other"].CA }), "", "not valid under the context's own ca"},
		"CA is no cert": {change(func(c *clientconfig.Context) { c.CA = base64.StdEncoding.EncodeToString([]byte("x")) }), "", "ca is not a certificate"},
	} {
		cfg, err := talos.ParseTalosconfig(tc.data, tc.context)
		require.ErrorContains(t, err, tc.want, name)
		require.Nil(t, cfg, name)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), name)
		require.NotContains(t, err.Error(), good.Contexts["lab"].Key[40:80], name)
	}
}

func TestExpiredTalosconfig(t *testing.T) {
	t.Parallel()
	cfg, err := configloader.NewFromBytes(cluster(t).ControlPlane)
	require.NoError(t, err)
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(cfg.Machine().Security().IssuingCA())
	require.NoError(t, err)
	pair, err := x509.NewKeyPair(authority, x509.NotAfter(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)))
	require.NoError(t, err)
	old, err := clientconfig.FromBytes(cluster(t).Talosconfig)
	require.NoError(t, err)
	old.Contexts["lab"].Crt = base64.StdEncoding.EncodeToString(pair.CrtPEM)
	old.Contexts["lab"].Key = base64.StdEncoding.EncodeToString(pair.KeyPEM)
	data, err := old.Bytes()
	require.NoError(t, err)
	_, err = talos.ParseTalosconfig(data, "")
	require.EqualError(t, err, `talosconfig context "lab": the client certificate expired at 2020-01-02T03:04:05Z; `+
		"make a new one with `talosctl config new` or `talosctl gen config`")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}

func TestBrokenTalosconfigQuotesNoKey(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	for i := range strings.Count(string(c.Talosconfig), "\n") {
		lines := bytes.SplitAfter(bytes.Clone(c.Talosconfig), []byte("\n"))
		lines[i] = append([]byte("\t!!int "), lines[i]...)
		if _, err := talos.ParseTalosconfig(bytes.Join(lines, nil), ""); err != nil {
			require.NotContains(t, err.Error(), "LS0t")
		}
	}
}

func TestMatchesConfig(t *testing.T) {
	t.Parallel()
	cfg := talosconfig(t, cluster(t))
	r, err := talos.Inspect(worker(t))
	require.NoError(t, err)
	require.NoError(t, cfg.MatchesConfig(r))

	other, err := talosnode.NewCluster("lab", "https://192.0.2.10:6443") // same name, other secrets
	require.NoError(t, err)
	err = talosconfig(t, other).MatchesConfig(r)
	require.ErrorContains(t, err, "is of another cluster than worker.yaml")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}
