package rig

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ironlot/ironlot/internal/devserver"
)

// Connect makes a namespace with Ironlot's search attributes on a Temporal
// server and connects to it, until the test ends.
func Connect(t testing.TB, address, namespace string) client.Client {
	t.Helper()
	options := client.Options{HostPort: address, Namespace: namespace, Logger: Quiet(t)}
	namespaces, err := client.NewNamespaceClient(options)
	require.NoError(t, err)
	defer namespaces.Close()
	require.NoError(t, namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.EventuallyWithT(t, func(collect *assert.CollectT) { // the server's caches learn of it later
		assert.NoError(collect, devserver.AddAttributes(t.Context(), c, namespace))
	}, time.Minute, 200*time.Millisecond)
	return c
}
