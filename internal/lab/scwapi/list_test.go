package scwapi_test

import (
	"testing"

	baremetal "github.com/scaleway/scaleway-sdk-go/api/baremetal/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/scwapi"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	looker := scwapi.Key{AccessKey: "SCWLOOKONLY000000000", SecretKey: recordedID("bb"), ReadOnly: true}
	l := newLab(t, func(o *scwapi.Options, _ *scwapi.ServerSpec) { o.Keys = []scwapi.Key{scwapi.DefaultKey(), looker} })
	for name, tc := range map[string]struct {
		method, path, token string
		code                int
		kind                any
	}{
		"no token":         {"GET", l.path(""), "", 401, "denied_authentication"},
		"wrong token":      {"GET", l.path(""), recordedID("cc"), 401, "denied_authentication"},
		"no token, lab":    {"GET", "/lab/faults", "", 401, "denied_authentication"},
		"looking":          {"GET", l.path(""), looker.SecretKey, 200, nil},
		"touching":         {"POST", l.path("/reboot"), looker.SecretKey, 403, "permissions_denied"},
		"unknown zone":     {"GET", "/baremetal/v1/zones/fr-par-9/servers", scwapi.DefaultKey().SecretKey, 404, nil},
		"other zone":       {"GET", "/baremetal/v1/zones/fr-par-1/servers/" + l.server.ID, scwapi.DefaultKey().SecretKey, 404, nil},
		"unknown route":    {"GET", "/instance/v1/zones/fr-par-1/servers", scwapi.DefaultKey().SecretKey, 404, nil},
		"broken body":      {"POST", l.path("/reboot"), scwapi.DefaultKey().SecretKey, 400, "invalid_arguments"},
		"page zero":        {"GET", "/baremetal/v1/zones/fr-par-2/servers?page=0", scwapi.DefaultKey().SecretKey, 400, "invalid_arguments"},
		"page far outside": {"GET", "/baremetal/v1/zones/fr-par-2/servers?page=9223372036854775807", scwapi.DefaultKey().SecretKey, 200, nil},
	} {
		var body any
		if name == "broken body" {
			body = "not an object"
		}
		code, answer, err := l.try(tc.method, tc.path, body, tc.token)
		require.NoError(t, err)
		assert.Equal(t, tc.code, code, name)
		assert.Equal(t, tc.kind, answer["type"], name)
	}
	assert.Empty(t, l.told())
}

func TestPagesThroughTheSDK(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	for range 120 {
		_, err := l.api.AddServer(scwapi.ServerSpec{Name: "more"})
		require.NoError(t, err)
	}
	sdk := newSDK(t, l.url)
	all, err := baremetal.NewAPI(sdk).ListServers(&baremetal.ListServersRequest{Zone: testZone}, scw.WithAllPages())
	require.NoError(t, err)
	require.Len(t, all.Servers, 121)
	seen := map[string]bool{}
	for _, s := range all.Servers {
		seen[s.ID] = true
		assert.Contains(t, s.Tags, scwapi.LabTag)
	}
	assert.Len(t, seen, 121)
	named := "metal-1"
	some, err := baremetal.NewAPI(sdk).ListServers(&baremetal.ListServersRequest{Zone: testZone, Name: &named, Status: []string{"ready"}})
	require.NoError(t, err)
	assert.Equal(t, uint32(1), some.TotalCount)
}

func newSDK(t *testing.T, url string, more ...scw.ClientOption) *scw.Client {
	t.Helper()
	key := scwapi.DefaultKey()
	sdk, err := scw.NewClient(append([]scw.ClientOption{scw.WithAPIURL(url), scw.WithAuth(key.AccessKey, key.SecretKey)}, more...)...)
	require.NoError(t, err)
	return sdk
}

func TestSameSeedSameServers(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, seed := range []uint64{7, 7, 8} {
		s, err := scwapi.New(scwapi.Options{Seed: seed}).AddServer(scwapi.ServerSpec{Name: "metal-1"})
		require.NoError(t, err)
		ids = append(ids, s.ID)
	}
	assert.Equal(t, ids[0], ids[1])
	assert.NotEqual(t, ids[0], ids[2])
}

func TestServersThatCannotBe(t *testing.T) {
	t.Parallel()
	api := scwapi.New(scwapi.Options{})
	first, err := api.AddServer(scwapi.ServerSpec{Name: "metal-1"})
	require.NoError(t, err)
	for name, spec := range map[string]scwapi.ServerSpec{
		"no name":  {},
		"bad ID":   {Name: "x", ID: "1"},
		"twice":    {Name: "x", ID: first.ID},
		"bad zone": {Name: "x", Zone: "mars-1"},
		"bad IP":   {Name: "x", Addresses: []string{"localhost"}},
	} {
		_, err := api.AddServer(spec)
		assert.Error(t, err, name)
	}
	_, ok := api.Counters("nobody")
	assert.False(t, ok)
}
