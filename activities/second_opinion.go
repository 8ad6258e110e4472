package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/kube"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// kubernetesPoll is the pause between two looks at the node's object.
const kubernetesPoll = 3 * time.Second

// askKubernetes looks at the object of a node that Talos calls Ready until it
// is what the lot expects. An API that does not answer is waited for: what it
// does not say counts as missing. It tells whether it had to wait.
func (w *readiness) askKubernetes(ctx context.Context, ready run.NodeReady) (notes []string, waited bool, err error) {
	client, err := kube.NewClient(w.secrets.kubernetes)
	if err != nil {
		return nil, false, err
	}
	want := w.expected(ctx, ready)
	for {
		unmet, notes, err := opinion(ctx, client, ready.NodeName, want)
		if err != nil || len(unmet) == 0 {
			return notes, waited, err
		}
		w.report(unmet)
		waited = true
		if err := pause.For(ctx, kubernetesPoll); err != nil {
			return nil, waited, err // what is missing has been reported
		}
	}
}

// expected is what the lot and the server itself say of the node's object.
func (w *readiness) expected(ctx context.Context, ready run.NodeReady) kube.Expected {
	node, vlan := w.in.Node, uint32(0)
	if w.in.Facts.Preflight != nil {
		vlan = w.in.Facts.Preflight.VLAN
	}
	labels := map[string]string{}
	for name, value := range node.Ready.Labels {
		labels[name] = node.Fill(value, vlan)
	}
	return kube.Expected{
		Labels: labels, ProviderID: node.Fill(node.Ready.ProviderID, vlan),
		NotReady: slices.Contains(ready.Missing, run.NoCNI), Tainted: node.Ready.Accepts(run.Uninitialized),
		Address: w.in.Facts.Address, UUID: w.systemUUID(ctx),
	}
}

// systemUUID is the hardware's UUID, empty when Talos does not tell it.
func (w *readiness) systemUUID(ctx context.Context) string {
	c, err := talos.Dial(ctx, talosAddr(w.in), w.secrets.client)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	uuid, err := c.SystemUUID(ctx)
	if err != nil {
		return ""
	}
	return uuid
}

// opinion is one look. The error is NeedsOperator: waiting cures it not.
func opinion(ctx context.Context, client *kube.Client, name string, want kube.Expected) (unmet, notes []string, err error) {
	node, err := client.Node(ctx, name)
	switch {
	case errors.Is(err, kube.ErrNoNode):
		return []string{fmt.Sprintf("kubernetes: there is no node %q", name)}, nil, nil
	case err != nil && fault.ClassOf(err) == fault.NeedsOperator:
		return nil, nil, err
	case err != nil:
		return []string{"kubernetes: " + err.Error()}, nil, nil //nolint:nilerr // it is waited for
	}
	unmet, notes = kube.Judge(node, want)
	for i := range unmet {
		unmet[i] = "kubernetes: " + unmet[i]
	}
	return unmet, notes, nil
}
