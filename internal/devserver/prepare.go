package devserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ironlot/ironlot/internal/fault"
)

// Retention is how long the history of a run is kept after its end.
const Retention = 720 * time.Hour

// Prepare makes a namespace of our own dev server fit for runs: the search
// attributes (its flags count only for a new database) and the retention,
// which is a day otherwise.
func Prepare(ctx context.Context, c client.Client, namespace string) error {
	if err := AddAttributes(ctx, c, namespace); err != nil {
		return err
	}
	_, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: namespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(Retention)},
	})
	if err != nil {
		return fmt.Errorf("the retention of the namespace %s cannot be set: %w", namespace, err)
	}
	return nil
}

// AddAttributes adds the search attributes that a namespace lacks, and
// nothing when it has them all.
func AddAttributes(ctx context.Context, c client.Client, namespace string) error {
	have, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return attributeError(namespace, "read", err)
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, name := range Attributes() {
		kind, ok := have.GetCustomAttributes()[name]
		if ok && kind != enumspb.INDEXED_VALUE_TYPE_KEYWORD {
			return fault.Operator("use another namespace", "the search attribute %s of the namespace %s has the type %s and must be Keyword", name, namespace, kind)
		}
		if !ok {
			missing[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	if exists := new(serviceerror.AlreadyExists); err != nil && !errors.As(err, &exists) {
		return attributeError(namespace, "added", err)
	}
	return nil
}

func attributeError(namespace, verb string, err error) error {
	return fault.Operator("ask whoever runs Temporal to add IronlotLot, IronlotNode, IronlotPhase and IronlotState, all Keyword",
		"the search attributes of the namespace %s cannot be %s: %w", namespace, verb, err)
}
