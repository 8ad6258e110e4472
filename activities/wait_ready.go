package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// waitReady proves over mTLS that the machine is running and ready, that the
// node is Ready in its cluster, and that it runs the lot's config. The first
// node of a cluster has its etcd bootstrapped before.
func (a *Activities) waitReady(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	s, err := a.open(in)
	if err != nil {
		return run.PhaseOutput{}, err
	}
	limited, cancel := context.WithDeadline(ctx, bound(ctx))
	defer cancel()
	w := &readiness{in: in, secrets: s, beat: b, unmet: []string{noAPI + "it has not answered over mTLS yet"}}
	ready, err := w.wait(limited)
	switch {
	case ctx.Err() != nil:
		return run.PhaseOutput{}, ctx.Err()
	case err != nil && limited.Err() != nil:
		return run.PhaseOutput{}, w.late()
	case err != nil:
		return run.PhaseOutput{}, err
	}
	if err := a.proveConfig(ctx, in, s); err != nil {
		return run.PhaseOutput{}, err
	}
	facts := in.Facts
	facts.Ready = &ready
	return run.PhaseOutput{Facts: facts, Summary: readySummary(ready)}, nil
}

// readiness is one attempt to see a node Ready.
type readiness struct {
	in      run.PhaseInput
	secrets *secrets
	beat    *beat
	unmet   []string // what is missing now
}

// wait waits for as long as the context lives.
func (w *readiness) wait(ctx context.Context) (run.NodeReady, error) {
	w.beat.step("waiting for Ready")
	var first *run.Bootstrapped
	if w.in.Node.Bootstrap {
		did, err := w.bootstrap(ctx)
		if err != nil {
			return run.NodeReady{}, err
		}
		first = &did
	}
	ready, err := w.agreed(ctx)
	ready.Bootstrap = first
	return ready, err
}

// agreed waits until Talos says Ready and Kubernetes, where the run may ask
// it, agrees. If Kubernetes had to be waited for, Talos is asked again.
func (w *readiness) agreed(ctx context.Context) (run.NodeReady, error) {
	for {
		ready, err := talos.WaitReady(ctx, talosAddr(w.in), w.secrets.client, readyOptions(w.in, w.secrets, w.report))
		if err != nil || w.secrets.kubernetes == nil {
			return ready, err
		}
		notes, waited, err := w.askKubernetes(ctx, ready)
		if err != nil || !waited {
			ready.Notes = notes
			return ready, err
		}
	}
}

// readyOptions says when the lot counts a node as done.
func readyOptions(in run.PhaseInput, s *secrets, report func([]string)) talos.ReadyOptions {
	return talos.ReadyOptions{
		Hold: in.Node.Ready.HoldOr(), Worker: !s.config.ControlPlane(), Report: report,
		Accept: in.Node.Ready.Accept, CloudProvider: s.config.CloudProvider,
	}
}

// bootstrap starts the cluster's etcd on its first node.
func (w *readiness) bootstrap(ctx context.Context) (run.Bootstrapped, error) {
	opts := talos.BootstrapOptions{
		Config: w.secrets.config,
		Report: func(step string) { w.report([]string{step}) },
		Commit: func(asked time.Time) error {
			if asked.IsZero() {
				return w.beat.commit(ctx, nil)
			}
			return w.beat.commit(ctx, &run.Intent{Action: "bootstrap etcd", At: asked.UTC()})
		},
	}
	if it := w.beat.intent(); it != nil {
		opts.Asked = it.At
	}
	return talos.Bootstrap(ctx, talosAddr(w.in), w.secrets.client, opts)
}

// report shows what is missing.
func (w *readiness) report(unmet []string) {
	w.unmet = unmet
	step := "Ready, watching that it stays so"
	if len(unmet) > 0 {
		step = "waiting for Ready: " + clip.End(strings.Join(unmet, "; "), 300)
	}
	w.beat.set(run.Progress{Step: step, Unmet: unmet})
}

func (w *readiness) late() error {
	return fault.Operator(lateRemedy(w.in.Facts.Address, w.unmet), "node %s was not Ready within %s: %s", w.in.Node.Name, w.in.Node.Timeouts.ReadyOr(), strings.Join(w.unmet, "; "))
}

// noAPI begins what is missing while Talos itself does not answer.
const noAPI = "api: "

// lateRemedy says how to find out why something is missing: a node that answers
// can be asked, one that does not has a console alone.
func lateRemedy(address string, unmet []string) string {
	if slices.ContainsFunc(unmet, func(what string) bool { return !strings.HasPrefix(what, noAPI) }) {
		return fmt.Sprintf("look why with `talosctl -n %[1]s -e %[1]s service` and `talosctl -n %[1]s -e %[1]s dmesg`, mend it, then retry, which goes on waiting", address)
	}
	return "look at its console at the provider: a VLAN or an address of its config that its network does not have keeps it away, as does, from a worker, a control plane that it does not reach on port 50001; " +
		"mend the network and retry, which goes on waiting; a wrong config takes `starter abort LOT NODE` and, when the lot has ended, `starter provision --batch LOT.YAML --node NODE` with the corrected file"
}

func readySummary(ready run.NodeReady) string {
	text := fmt.Sprintf("node %s is Ready, Talos %s", ready.NodeName, ready.TalosVersion)
	if len(ready.Missing) > 0 {
		text = fmt.Sprintf("node %s is done as the lot accepts it (%s), Talos %s", ready.NodeName, missing(ready), ready.TalosVersion)
	}
	switch did := ready.Bootstrap; {
	case did == nil:
	case did.Already:
		text += "; etcd ran already as member " + did.MemberID
	default:
		text += "; etcd bootstrapped as member " + did.MemberID
	}
	return text
}

func missing(ready run.NodeReady) string {
	words := make([]string, 0, len(ready.Missing))
	for _, word := range ready.Missing {
		words = append(words, string(word))
	}
	return strings.Join(words, ", ")
}

func (a *Activities) proveConfig(ctx context.Context, in run.PhaseInput, s *secrets) error {
	c, err := talos.Dial(ctx, talosAddr(in), s.client)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return sameConfig(ctx, c, in, s)
}
