package activities

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
)

// account is a provider that counts what it is asked.
type account struct {
	provider.Provider

	lists, keys, describes, networks atomic.Int32
	list                             func(n int32) (provider.Listing, error)
}

func (p *account) List(context.Context, string) (provider.Listing, error) {
	return p.list(p.lists.Add(1))
}

func (p *account) SSHKeyIDs(context.Context, []string) ([]string, error) {
	p.keys.Add(1)
	return []string{"key"}, nil
}

func (p *account) Describe(_ context.Context, zone, id string) (provider.Server, error) {
	p.describes.Add(1)
	return provider.Server{}, fault.Operator("correct it", "there is no server %s in zone %s", id, zone)
}

func (p *account) Networks(context.Context, string, string) ([]provider.Network, error) {
	p.networks.Add(1)
	return nil, nil
}

// checkLot runs the activity that checks nodes.
func checkLot(t *testing.T, a *Activities, in run.LotInput) ([]run.NodeCheck, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	register(a, env, run.ActivityCheck, a.checkNodes)
	value, err := env.ExecuteActivity(run.ActivityCheck, in)
	if err != nil {
		return nil, err
	}
	var checks []run.NodeCheck
	require.NoError(t, value.Get(&checks))
	return checks, nil
}

// TestProviderIsAskedOnceForAllNodes: nodes that cannot be opened, so that no
// machine is needed, still show what the provider was asked.
func TestProviderIsAskedOnceForAllNodes(t *testing.T) {
	t.Parallel()
	listing := provider.Listing{Servers: map[string]provider.Server{"1": {Name: "em-1"}, "2": {Name: "em-2"}}}
	p := &account{list: func(int32) (provider.Listing, error) { return listing, nil }}
	a := New(Config{Provider: p, Dialer: &rescue.Dialer{}})
	in := run.LotInput{Lot: "l"}
	for _, id := range []string{"1", "2", "3"} {
		in.Nodes = append(in.Nodes, run.NodeInput{Node: run.Node{Name: "n" + id, ServerID: id, ServerName: "em-" + id, VLAN: run.VLANAuto}})
	}
	checks, err := checkLot(t, a, in.Share())
	require.NoError(t, err)
	for i, check := range checks {
		require.Equal(t, in.Nodes[i].Node.Name, check.Name)
		require.Equal(t, string(fault.NeedsOperator), check.Problem.Class)
		require.Contains(t, check.Problem.Message, "needs one private network, and its VLANs are: none")
		require.Contains(t, check.Problem.Remedy, "attach exactly one private network")
		require.Contains(t, check.Problem.Erased, "nothing")
	}
	require.EqualValues(t, 1, p.lists.Load())
	require.EqualValues(t, 1, p.networks.Load(), "of the server that is not in the list")
}

// TestWhatPassesIsCheckedAgain: the node that fails in passing alone, from a
// new list.
func TestWhatPassesIsCheckedAgain(t *testing.T) {
	t.Parallel()
	p := &account{list: func(n int32) (provider.Listing, error) {
		listing := provider.Listing{Servers: map[string]provider.Server{"1": {}, "2": {}}, Networks: map[string][]provider.Network{}}
		if n == 1 {
			listing.Networks["1"] = []provider.Network{{ID: "a", Status: "attaching"}}
		}
		return listing, nil
	}}
	a := New(Config{Provider: p, Dialer: &rescue.Dialer{}})
	in := run.LotInput{Lot: "l", Nodes: []run.NodeInput{
		{Node: run.Node{Name: "n1", ServerID: "1", VLAN: run.VLANAuto}},
		{Node: run.Node{Name: "n2", ServerID: "2", VLAN: run.VLANAuto}},
	}}
	checks, err := checkLot(t, a, in)
	require.NoError(t, err)
	require.EqualValues(t, 2, p.lists.Load())
	for _, check := range checks {
		require.Equal(t, string(fault.NeedsOperator), check.Problem.Class, check.Name)
	}
}

func TestListThatFailsFailsTheCheck(t *testing.T) {
	t.Parallel()
	p := &account{list: func(int32) (provider.Listing, error) {
		return provider.Listing{}, fault.Operator("give the key the permission ElasticMetalReadOnly", "the provider denies the list")
	}}
	_, err := checkLot(t, New(Config{Provider: p, Dialer: &rescue.Dialer{}}), run.LotInput{Nodes: []run.NodeInput{{}}})
	require.ErrorContains(t, err, "the provider denies the list")
}

// TestSharedLooksAreDoneOnce: by whoever comes first, also side by side.
func TestSharedLooksAreDoneOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("\x28\xb5\x2f\xfd rest"))
	}))
	t.Cleanup(server.Close)
	p := &account{list: func(int32) (provider.Listing, error) { return provider.Listing{}, nil }}
	shared, err := New(Config{Provider: p, Dialer: &rescue.Dialer{}, HTTP: server.Client()}).sharing(t.Context(), "z")
	require.NoError(t, err)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			look, err := shared.look(t.Context(), run.Image{URL: server.URL + "/image" + string(rune('a'+i%2))})
			if err != nil || look.format != "zstd" {
				t.Error(look, err)
			}
			if err := shared.checkKeys(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 2, asked.Load(), "one look for each of two images")
	require.EqualValues(t, 1, p.keys.Load())
}
