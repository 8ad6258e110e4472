package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

func TestEndpointThatIsTheWorkerItself(t *testing.T) {
	t.Parallel()
	look := func(_ context.Context, host string) ([]string, error) {
		if host == "api.example" {
			return []string{"192.0.2.9", "192.0.2.7"}, nil
		}
		return nil, errors.New("no such host")
	}
	for _, c := range []struct {
		endpoint     string
		controlPlane bool
		refused      bool
	}{
		{"https://192.0.2.7:6443", false, true},
		{"https://192.0.2.7:6443", true, false},
		{"https://192.0.2.8:6443", false, false},
		{"https://api.example:6443", false, true},
		{"https://elsewhere.example:6443", false, false},
	} {
		cluster, err := talosnode.NewCluster("lab", c.endpoint)
		require.NoError(t, err)
		data := cluster.Worker
		if c.controlPlane {
			data = cluster.ControlPlane
		}
		config, err := talos.Inspect(talos.Named{Name: "config.yaml", Data: data})
		require.NoError(t, err)
		err = checkEndpoint(t.Context(), look, run.Node{Name: "worker-1"}, config, []string{"192.0.2.7"})
		if !c.refused {
			require.NoError(t, err, "%+v", c)
			continue
		}
		require.ErrorContains(t, err, "of worker worker-1 leads to the worker's own server (192.0.2.7)")
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	}
}
