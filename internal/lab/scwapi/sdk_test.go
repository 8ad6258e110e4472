package scwapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	baremetal "github.com/scaleway/scaleway-sdk-go/api/baremetal/v1"
	networks "github.com/scaleway/scaleway-sdk-go/api/baremetal/v3"
	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	vpc "github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/scwapi"
)

// recorder writes down what the SDK sends.
type recorder struct{ sent []exchange }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	e := exchange{Method: req.Method, Path: req.URL.Path}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		e.Request = string(body)
	}
	if req.Method != http.MethodGet {
		r.sent = append(r.sent, e)
	}
	return http.DefaultTransport.RoundTrip(req)
}

// TestSDKDoesWhatWasRecorded takes a server through its life with the real
// SDK, its own waiting included, and compares what it sends with the
// recording: the simulator is driven by the requests that the real API gets.
func TestSDKDoesWhatWasRecorded(t *testing.T) {
	t.Parallel()
	api := scwapi.New(scwapi.Options{Latency: &scwapi.Latency{Settle: 10 * time.Millisecond, Delete: time.Millisecond}})
	key, err := api.AddSSHKey("key", testKey)
	require.NoError(t, err)
	served := httptest.NewServer(api.Handler())
	t.Cleanup(served.Close)
	sent := &recorder{}
	servers := baremetal.NewAPI(newSDK(t, served.URL, scw.WithHTTPClient(&http.Client{Transport: sent})))
	ids := map[string]string{
		"ddb09834-8680-4339-b5e3-19ca5205fa1f": recordedID("01"), scwapi.ProjectID: recordedID("02"),
		"03b7f4ba-a6a1-4305-984e-b54fafbf1681": recordedID("03"), key: recordedID("04"),
	}

	project := scwapi.ProjectID
	made, err := servers.CreateServer(&baremetal.CreateServerRequest{
		Zone: testZone, OfferID: "ddb09834-8680-4339-b5e3-19ca5205fa1f", ProjectID: &project,
		Name: "TestAccBaremetalServerAction_Basic", Description: "initial-description",
		Tags:    []string{"terraform-test", "scaleway_baremetal_server", "minimal"},
		Install: &baremetal.CreateServerRequestInstall{OsID: "03b7f4ba-a6a1-4305-984e-b54fafbf1681", SSHKeyIDs: []string{key}},
	})
	require.NoError(t, err)
	ids[made.ID] = recordedID("05")
	assert.Equal(t, baremetal.ServerStatusOrdered, made.Status)
	wait := func(want baremetal.ServerStatus) {
		interval := time.Millisecond
		s, err := servers.WaitForServer(&baremetal.WaitForServerRequest{Zone: testZone, ServerID: made.ID, RetryInterval: &interval})
		require.NoError(t, err)
		assert.Equal(t, want, s.Status)
	}
	wait(baremetal.ServerStatusReady)
	description := "updated-description"
	_, err = servers.UpdateServer(&baremetal.UpdateServerRequest{Zone: testZone, ServerID: made.ID, Description: &description})
	require.NoError(t, err)
	_, err = servers.StopServer(&baremetal.StopServerRequest{Zone: testZone, ServerID: made.ID})
	require.NoError(t, err)
	wait(baremetal.ServerStatusStopped)
	_, err = servers.StartServer(&baremetal.StartServerRequest{Zone: testZone, ServerID: made.ID}) // no boot type, as recorded
	require.NoError(t, err)
	wait(baremetal.ServerStatusReady)
	_, err = servers.RebootServer(&baremetal.RebootServerRequest{Zone: testZone, ServerID: made.ID, BootType: "normal"})
	require.NoError(t, err)
	wait(baremetal.ServerStatusReady)
	_, err = servers.DeleteServer(&baremetal.DeleteServerRequest{Zone: testZone, ServerID: made.ID})
	require.NoError(t, err)

	var recorded []exchange
	for _, e := range readRecordings(t)["action-basic"] {
		if e.Method != http.MethodGet {
			recorded = append(recorded, e)
		}
	}
	require.Len(t, sent.sent, len(recorded))
	for i, e := range sent.sent {
		for simulated, old := range ids {
			e.Path = strings.ReplaceAll(e.Path, simulated, old)
			e.Request = strings.ReplaceAll(e.Request, simulated, old)
		}
		assert.Equal(t, recorded[i].Method+" "+recorded[i].Path, e.Method+" "+e.Path)
		if recorded[i].Request != "" {
			assert.JSONEq(t, recorded[i].Request, e.Request)
		}
	}
}

func TestPrivateNetworksThroughTheSDK(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(_ *scwapi.Options, s *scwapi.ServerSpec) { s.Networks = []scwapi.Network{{VLAN: 1891}} })
	sdk := newSDK(t, l.url)
	attached := networks.NewPrivateNetworkAPI(sdk)
	list := func() []*networks.ServerPrivateNetwork {
		found, err := attached.ListServerPrivateNetworks(&networks.PrivateNetworkAPIListServerPrivateNetworksRequest{
			Zone: testZone, ServerID: &l.server.ID}, scw.WithAllPages())
		require.NoError(t, err)
		return found.ServerPrivateNetworks
	}
	first := list()
	require.Len(t, first, 1)
	assert.Equal(t, networks.ServerPrivateNetworkStatusAttached, first[0].Status)
	assert.Equal(t, uint32(1891), *first[0].Vlan)

	second, err := vpc.NewAPI(sdk).CreatePrivateNetwork(&vpc.CreatePrivateNetworkRequest{Region: "fr-par", Name: "second"})
	require.NoError(t, err)
	set, err := attached.SetServerPrivateNetworks(&networks.PrivateNetworkAPISetServerPrivateNetworksRequest{
		Zone: testZone, ServerID: l.server.ID, PerPrivateNetworkIpamIPIDs: map[string]*[]string{second.ID: {}}})
	require.NoError(t, err)
	require.Len(t, set.ServerPrivateNetworks, 2)
	assert.Equal(t, networks.ServerPrivateNetworkStatusDetaching, set.ServerPrivateNetworks[0].Status)
	assert.Equal(t, networks.ServerPrivateNetworkStatusAttaching, set.ServerPrivateNetworks[1].Status)
	l.pass(5 * time.Second)
	now := list()
	require.Len(t, now, 1)
	assert.Equal(t, second.ID, now[0].PrivateNetworkID)
	assert.Equal(t, networks.ServerPrivateNetworkStatusAttached, now[0].Status)
	assert.Len(t, now[0].IpamIPIDs, 2)

	err = vpc.NewAPI(sdk).DeletePrivateNetwork(&vpc.DeletePrivateNetworkRequest{Region: "fr-par", PrivateNetworkID: second.ID})
	assert.Error(t, err, "it is in use")
	err = attached.DeleteServerPrivateNetwork(&networks.PrivateNetworkAPIDeleteServerPrivateNetworkRequest{
		Zone: testZone, ServerID: l.server.ID, PrivateNetworkID: second.ID})
	require.NoError(t, err)
	l.pass(5 * time.Second)
	assert.Empty(t, list())
}

// TestAnswersFitTheSDK decodes answers into the SDK's types and lets no field
// be unknown to them.
func TestAnswersFitTheSDK(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(_ *scwapi.Options, s *scwapi.ServerSpec) { s.Networks = []scwapi.Network{{}} })
	l.reboot("rescue")
	const zone = "/baremetal/v1/zones/" + testZone
	for path, into := range map[string]any{
		l.path(""):               &baremetal.Server{},
		zone + "/servers":        &baremetal.ListServersResponse{},
		l.path("/events"):        &baremetal.ListServerEventsResponse{},
		zone + "/offers":         &baremetal.ListOffersResponse{},
		zone + "/os":             &baremetal.ListOSResponse{},
		zone + "/options":        &baremetal.ListOptionsResponse{},
		"/iam/v1alpha1/ssh-keys": &iam.ListSSHKeysResponse{},
		"/iam/v1alpha1/api-keys/" + scwapi.DefaultKey().AccessKey:      &iam.APIKey{},
		"/vpc/v2/regions/fr-par/private-networks":                      &vpc.ListPrivateNetworksResponse{},
		"/baremetal/v3/zones/" + testZone + "/server-private-networks": &networks.ListServerPrivateNetworksResponse{},
		zone + "/server-private-networks":                              &baremetal.ListServerPrivateNetworksResponse{},
		zone + "/partitioning-schemas/default":                         &baremetal.Schema{},
		zone + "/offers/ddb09834-8680-4339-b5e3-19ca5205fa1f":          &baremetal.Offer{},
		"/iam/v1alpha1/ssh-keys/" + l.keyID:                            &iam.SSHKey{},
	} {
		code, answer := l.call("GET", path, nil)
		require.Equal(t, http.StatusOK, code, path)
		delete(answer, "Retry-After")
		encoded, err := json.Marshal(answer)
		require.NoError(t, err)
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.DisallowUnknownFields()
		assert.NoError(t, decoder.Decode(into), path)
	}
}
