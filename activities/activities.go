// Package activities holds one activity for each phase of a run, each in a
// file of its own. An activity may be run again, by another worker, against
// a half-done server: it looks first, does what is missing, and is done only
// when it has seen the effect.
package activities

import (
	"context"
	"net"
	"net/http"
	"time"

	"filippo.io/age"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
)

// Config is what the activities work with.
type Config struct {
	Provider   provider.Provider
	Dialer     *rescue.Dialer
	Identities []age.Identity // open what the starter sealed
	HTTP       *http.Client   // looks at the image during preflight
	// Record writes heartbeat details to Temporal before it returns, as
	// client.Client.RecordActivityHeartbeat does.
	Record func(ctx context.Context, taskToken []byte, details ...any) error
	// RunEnded reports whether Temporal knows a run and that it has ended.
	RunEnded func(ctx context.Context, workflowID, runID string) (bool, error)
	// Sealed gives what a run's workflow was started with, sealed.
	Sealed func(ctx context.Context, workflowID, runID string) (run.Sealed, error)
	// LotImage gives the image of a run of a lot: the claim, when it is the first
	// one. An empty lotRun stands for the run that is at work.
	LotImage func(ctx context.Context, lot, lotRun string, claim run.LotImage) (run.LotImage, error)
}

// Activities are the phases' activities.
type Activities struct {
	provider   provider.Provider
	dialer     *rescue.Dialer
	identities []age.Identity
	http       *http.Client
	record     func(ctx context.Context, taskToken []byte, details ...any) error
	runEnded   func(ctx context.Context, workflowID, runID string) (bool, error)
	sealed     func(ctx context.Context, workflowID, runID string) (run.Sealed, error)
	lotImage   func(ctx context.Context, lot, lotRun string, claim run.LotImage) (run.LotImage, error)
	look       func(ctx context.Context, image run.Image) (imageLook, error)
	lookup     lookup
	pace       *pace
	turns      turns
	mayAnswer  time.Duration // how long a boot may still answer after SysRq
}

// New makes the activities.
func New(c Config) *Activities {
	a := &Activities{
		provider: c.Provider, dialer: c.Dialer, identities: c.Identities, http: c.HTTP,
		record: c.Record, runEnded: c.RunEnded, sealed: c.Sealed, lotImage: c.LotImage,
		lookup: net.DefaultResolver.LookupHost, pace: &pace{}, turns: make(turns, turnsAtOnce), mayAnswer: resetWithin,
	}
	a.look = a.lookAtImage
	return a
}

// Close ends the logins to machines that are kept for a next phase.
func (a *Activities) Close() { a.dialer.Close() }

// RegisterMachine registers the activities that work on machines and nodes,
// for the task queue run.TaskQueue.
func (a *Activities) RegisterMachine(r worker.ActivityRegistry) {
	a.register(r, string(run.WaitSSH), a.waitSSH)
	a.register(r, string(run.DiskPrep), a.diskPrep)
	a.register(r, string(run.Stage), a.stage)
	a.register(r, string(run.Write), a.write)
	a.register(r, string(run.SysrqReset), a.sysrqReset)
	a.register(r, string(run.ApplyConfig), a.applyConfig)
	a.register(r, string(run.WaitReady), a.waitReady)
	a.register(r, run.ActivityStopJob, a.stopJob)
}

// RegisterProvider registers the activities that ask the provider for
// something, for the task queue run.ProviderTaskQueue.
func (a *Activities) RegisterProvider(r worker.ActivityRegistry) {
	a.register(r, string(run.Preflight), a.preflightOrKept)
	register(a, r, run.ActivityCheck, a.checkNodes)
	a.register(r, string(run.RebootRescue), a.rebootRescue)
	a.register(r, string(run.BootNormal), a.bootNormal)
}

// phaseFunc does a phase: it heartbeats through the beat and returns a fault.
type phaseFunc func(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error)

func (a *Activities) register(r worker.ActivityRegistry, name string, do phaseFunc) {
	register(a, r, name, func(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
		if err := a.fetch(ctx, &in); err != nil {
			return run.PhaseOutput{}, err
		}
		out, err := do(ctx, b, in)
		out.Facts = out.Facts.Since(in.Facts)
		return out, err
	})
}

// register registers an activity that heartbeats and returns a fault.
func register[In, Out any](a *Activities, r worker.ActivityRegistry, name string, do func(context.Context, *beat, In) (Out, error)) {
	r.RegisterActivityWithOptions(func(ctx context.Context, in In) (Out, error) {
		ctx, b := a.startBeat(ctx)
		defer b.stop()
		out, err := do(ctx, b, in)
		if err != nil {
			var none Out
			return none, report(ctx, err)
		}
		return out, nil
	}, activity.RegisterOptions{Name: name})
}

// fetch gets what a phase needs sealed from its run's input.
func (a *Activities) fetch(ctx context.Context, in *run.PhaseInput) error {
	if !in.TakesConfig || in.Sealed != nil {
		return nil
	}
	execution := activity.GetInfo(ctx).WorkflowExecution
	sealed, err := a.sealed(ctx, execution.ID, execution.RunID)
	if err != nil {
		return fault.Retry("the sealed config of node %s cannot be fetched from its run: %w", in.Node.Name, err)
	}
	in.Sealed = &sealed
	return nil
}
