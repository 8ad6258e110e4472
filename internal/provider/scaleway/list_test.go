package scaleway_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/provider"
)

// TestListIsWhatTheServersAreOneByOne: over pages, and of the one zone.
func TestListIsWhatTheServersAreOneByOne(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{Networks: []scwapi.Network{{VLAN: 7}, {VLAN: 8}}})
	ids := []string{l.server.ID}
	for i := range 120 { // more than a page
		s, err := l.api.AddServer(scwapi.ServerSpec{Name: fmt.Sprint("more-", i), Zone: zone, Networks: []scwapi.Network{{VLAN: uint32(100 + i)}}})
		require.NoError(t, err)
		ids = append(ids, s.ID)
	}
	_, err := l.api.AddServer(scwapi.ServerSpec{Name: "elsewhere", Zone: "nl-ams-1"})
	require.NoError(t, err)

	listing, err := l.List(t.Context(), zone)
	require.NoError(t, err)
	require.Len(t, listing.Servers, len(ids))
	for _, id := range []string{ids[0], ids[1], ids[120]} {
		server, err := l.Describe(t.Context(), zone, id)
		require.NoError(t, err)
		require.Equal(t, server, listing.Servers[id])
		networks, err := l.Networks(t.Context(), zone, id)
		require.NoError(t, err)
		require.ElementsMatch(t, networks, listing.Networks[id])
	}
	none, err := l.List(t.Context(), "pl-waw-2")
	require.NoError(t, err)
	require.Equal(t, provider.Listing{Servers: map[string]provider.Server{}, Networks: map[string][]provider.Network{}}, none)
	_, err = l.List(t.Context(), "../fr-par-2")
	refused(t, fault.NeedsOperator, err)
}
