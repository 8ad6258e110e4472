package activities

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
)

func TestCheckServer(t *testing.T) {
	t.Parallel()
	in := run.PhaseInput{Node: run.Node{ServerID: "id", ServerName: "em-1"}}
	good := provider.Server{Name: "em-1", Status: "ready", Settled: true, Usable: true, Addresses: []string{"192.0.2.1"}}
	require.NoError(t, checkServer(in, good))

	bad := good
	bad.Name, bad.Protected, bad.Addresses = "em-2", true, nil
	err := checkServer(in, bad)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	for _, part := range []string{`called "em-2"`, "is protected", "no public address"} {
		require.ErrorContains(t, err, part)
	}

	passing := good
	passing.Status, passing.Settled, passing.Usable = "starting", false, false
	require.Equal(t, fault.Transient, fault.ClassOf(checkServer(in, passing)))

	locked := good
	locked.Status, locked.Usable = "locked", false
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(checkServer(in, locked)))
}

func TestCheckVLANs(t *testing.T) {
	t.Parallel()
	networks := []provider.Network{{ID: "a", VLAN: 1083, Status: "attached"}, {ID: "b", VLAN: 2000, Status: "attached"}}
	attaching := []provider.Network{{ID: "a", Status: "attaching"}}
	for name, c := range map[string]struct {
		wanted   []uint32
		networks []provider.Network
		class    fault.Class
		parts    []string
	}{
		"none wanted, none there": {nil, nil, "", nil},
		"none wanted, some there": {nil, networks, "", nil},
		"the server's":            {[]uint32{1083}, networks, "", nil},
		"foreign":                 {[]uint32{7}, networks, fault.NeedsOperator, []string{"VLAN 7", "1083, 2000"}},
		"none attached":           {[]uint32{7}, nil, fault.NeedsOperator, []string{"VLAN 7", "none"}},
		"two":                     {[]uint32{1083, 2000}, networks, fault.NeedsOperator, []string{"2 VLANs"}},
		"still attaching":         {[]uint32{1083}, attaching, fault.Transient, []string{"attaching"}},
		"attaching, not needed":   {nil, attaching, "", nil},
	} {
		err := checkVLANs("em-1", c.wanted, c.networks)
		if c.class == "" {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, c.class, fault.ClassOf(err), name)
		for _, part := range c.parts {
			require.ErrorContains(t, err, part, name)
		}
	}
}

func TestTogetherShowsWhatAPersonMustMend(t *testing.T) {
	t.Parallel()
	require.NoError(t, together([]error{nil, nil}))
	one := fault.Operator("do", "one is wrong")
	require.Equal(t, error(one), together([]error{nil, one}))
	require.Equal(t, error(one), together([]error{fault.Retry("429"), one}), "what passes by itself waits its turn")
	err := together([]error{one, nil, fault.Operator("do that", "two is wrong")})
	require.ErrorContains(t, err, "1. one is wrong (do) 2. two is wrong (do that)")
	require.ErrorIs(t, err, one)
	require.Equal(t, fault.Transient, fault.ClassOf(together([]error{fault.Retry("a"), fault.Retry("b")})))
	plain := errors.New("plain")
	require.Equal(t, plain, together([]error{plain}))
}

func TestLookAtImage(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	serve := func(path string, status int, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	serve("/good.zst", 200, "\x28\xb5\x2f\xfd rest")
	serve("/page", 200, "<!doctype html><title>sign in</title>")
	serve("/gone", 404, "no")
	serve("/busy", 429, "later")
	serve("/broken", 503, "later")
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	a := New(Config{HTTP: server.Client()})

	look, err := a.lookAtImage(t.Context(), run.Image{URL: server.URL + "/good.zst"})
	require.NoError(t, err)
	require.Equal(t, imageLook{format: "zstd", size: 9}, look)
	for path, class := range map[string]fault.Class{
		"/page": fault.NeedsOperator, "/gone": fault.NeedsOperator, "/busy": fault.Transient, "/broken": fault.Transient,
	} {
		_, err := a.lookAtImage(t.Context(), run.Image{URL: server.URL + path + "?signature=CANARY"})
		require.Equal(t, class, fault.ClassOf(err), path)
		require.NotContains(t, err.Error(), "CANARY")
	}
	_, err = a.lookAtImage(t.Context(), run.Image{URL: "http://user:CANARY@127.0.0.1:1/x?CANARY"})
	require.Equal(t, fault.Transient, fault.ClassOf(err))
	require.NotContains(t, err.Error(), "CANARY")
}

func TestClip(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 100)
	require.Equal(t, "short", clip.End("short", 10))
	require.Equal(t, "short", clip.Start("short", 10))
	require.LessOrEqual(t, len(clip.End(long, 50)), 50)
	require.LessOrEqual(t, len(clip.Start(long, 50)), 50)
	require.True(t, strings.HasSuffix(clip.End(long, 50), "ä…"))
	require.True(t, strings.HasPrefix(clip.Start(long, 50), "…ä"))
}
