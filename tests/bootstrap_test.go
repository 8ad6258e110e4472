package tests

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

// TestLotStartsItsCluster: nothing of the cluster is there. The first node
// bootstraps it, once although the answer is lost, and the worker starts only
// when there is a control plane to join.
func TestLotStartsItsCluster(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, Bootstrap: true, Faults: faults(t, "bootstrap-lost@1")})
	s.startWorker()
	inputs := s.inputs(nil)
	require.True(t, inputs[0].Node.Bootstrap)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	require.NoError(t, s.startLot(inputs).Get(ctx, nil), "worker log:\n%s", s.log)

	first, worker := s.status(inputs[0].Node.ID()), s.status(inputs[1].Node.ID())
	require.Equal(t, run.Ready, first.State, "%+v", first.Problem)
	require.Equal(t, run.Ready, worker.State, "%+v", worker.Problem)
	require.NotEmpty(t, first.Facts.Ready.Bootstrap.MemberID)
	require.False(t, first.Facts.Ready.Bootstrap.Already)
	require.Contains(t, first.Timeline[len(first.Timeline)-1].Summary, "etcd bootstrapped as member "+first.Facts.Ready.Bootstrap.MemberID)
	require.Nil(t, worker.Facts.Ready.Bootstrap)
	require.False(t, worker.Started.Before(first.Ended), "the worker started at %s, the first node was Ready at %s", worker.Started, first.Ended)
	console := strings.Join(s.fleet.Servers()[0].Machine.Console(), "\n")
	require.Equal(t, 1, strings.Count(console, "bootstrap request received"))
}
