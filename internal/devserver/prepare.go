package devserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/temporal"
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
// nothing when it has them all. Once it returns runs can be started with them.
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
		return known(ctx, c, namespace) // another worker may have added them just now
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	if exists := new(serviceerror.AlreadyExists); err != nil && !errors.As(err, &exists) {
		return attributeError(namespace, "added", err)
	}
	return known(ctx, c, namespace)
}

// knownWithin bounds how long Temporal may take to know what it was given: its
// services look for changes of a namespace every 2 s (Temporal 1.29,
// system.namespaceCacheRefreshInterval), and other stores take a minute.
const knownWithin = 2 * time.Minute

// known waits until Temporal takes the search attributes in a query, as it then
// does in the start of a workflow.
func known(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	query := strings.Join(Attributes(), " = 'none' AND ") + " = 'none'"
	for {
		_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: query})
		if err == nil {
			return nil
		}
		if invalid := new(serviceerror.InvalidArgument); !errors.As(err, &invalid) {
			return attributeError(namespace, "looked for", err)
		}
		if pause.For(ctx, 100*time.Millisecond) != nil {
			return fault.Retry("the search attributes were added to the namespace %s, and Temporal does not know them yet: %w", namespace, err)
		}
	}
}

// attributeError is for a person to mend, unless the attributes are not what
// is wrong: the namespace is not there, or nobody answers.
func attributeError(namespace, verb string, err error) error {
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) || temporal.Unanswered(err) {
		return fmt.Errorf("the search attributes of the namespace %s cannot be %s: %w", namespace, verb, err)
	}
	return fault.Operator("ask whoever runs Temporal to add IronlotLot, IronlotNode, IronlotPhase and IronlotState, all Keyword",
		"the search attributes of the namespace %s cannot be %s: %w", namespace, verb, err)
}
