package devserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestAddedAttributesCanBeUsedAtOnce: who starts a worker on a namespace that is
// new to Ironlot starts a lot the next moment.
func TestAddedAttributesCanBeUsedAtOnce(t *testing.T) {
	t.Parallel()
	o := options(t)
	s, standard := start(t, o)
	const namespace = "team"
	_, err := standard.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	c, err := client.DialContext(t.Context(), client.Options{HostPort: s.Address(), Namespace: namespace, Logger: o.Logger})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.EventuallyWithT(t, func(collect *assert.CollectT) { // the namespace itself is known later
		assert.NoError(collect, AddAttributes(t.Context(), c, namespace))
	}, time.Minute, 50*time.Millisecond)
	attributes := temporal.NewSearchAttributes()
	for _, name := range Attributes() {
		attributes = temporal.NewSearchAttributes(attributes.Copy(), temporal.NewSearchAttributeKeyKeyword(name).ValueSet("x"))
	}
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "nobody", TypedSearchAttributes: attributes}, "Sleep")
	require.NoError(t, err)
}
