// Package worker wires workflows and activities to Temporal and runs them
// until it is told to stop. The program in worker/ and `starter up` are thin
// shells around it.
package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"filippo.io/age"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/ironlot/ironlot/activities"
	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/workflows"
)

// Config is what a worker works with.
type Config struct {
	Temporal   client.Client
	Namespace  string
	Provider   provider.Provider
	KeyFile    string   // SSH private key; when empty the SSH agent is asked
	Socket     string   // of the SSH agent
	AgentDirs  []string // where the agent executables are
	Identities []age.Identity
	MaxNodes   int     // activities at once, each a node at work; at least 1
	Rate       float64 // provider activities per second, over all workers; above 0
	Log        *zap.Logger
	Started    func() // called once the worker takes work; may be nil
	Versioning Versioning
}

// Defaults of Config. The provider publishes no limit of its API: at the
// default rate a lot of 1,000 passes preflight in 20 s, with about 150 calls a
// second, and a provider that finds that too much says so with a 429, which
// slows all workers down.
const (
	DefaultMaxNodes = 2000
	DefaultRate     = 50
)

const (
	// stopTimeout is what running activities get to notice that the worker
	// stops: they let go of the machine, whose jobs go on without them.
	stopTimeout = 15 * time.Second
	// heartbeatThrottle bounds how late a cancellation is seen.
	heartbeatThrottle = 2 * time.Second
	// pollers is how many tasks of a kind are asked for side by side. A poll of
	// a busy server takes long, and with the SDK's two a lot of 1,000 had its
	// workflow tasks wait for minutes.
	pollers = 10
	// The SDK adapts the pollers of workflow tasks within these, for this
	// worker's workflows and for new ones each. A fixed number is shared by both,
	// and asks for the first alone while they have a backlog: new nodes then wait
	// until those under way need nothing.
	fewestPollers, mostPollers = 5, 20
	// stickyTimeout is how long a workflow task waits for the worker that has
	// the workflow in its cache before any worker may replay the whole history.
	// The SDK's 5 s make a busy worker busier; one that is gone is noticed by
	// the server itself.
	stickyTimeout = 10 * time.Second
)

// Run checks that the worker has all it needs, says what is missing, then
// works until the context ends. It returns after a graceful stop.
func Run(ctx context.Context, c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	slow := newBrake(c)
	c.Provider = provider.Paced(c.Provider, slow.pace, slow.press)
	acts, err := c.activities()
	if err != nil {
		return err
	}
	defer acts.Close()
	if err := devserver.AddAttributes(ctx, c.Temporal, c.Namespace); err != nil {
		return err
	}
	machine := sdk.New(c.Temporal, run.TaskQueue, c.options())
	machine.RegisterWorkflowWithOptions(workflows.ProvisionNode, workflow.RegisterOptions{Name: run.WorkflowNode})
	machine.RegisterWorkflowWithOptions(workflows.ProvisionLot, workflow.RegisterOptions{Name: run.WorkflowLot})
	machine.RegisterWorkflowWithOptions(workflows.CheckLot, workflow.RegisterOptions{Name: run.WorkflowCheck})
	acts.RegisterMachine(machine)
	options := c.options()
	options.TaskQueueActivitiesPerSecond = c.Rate
	options.DisableWorkflowWorker = true
	api := sdk.New(c.Temporal, run.ProviderTaskQueue, options)
	acts.RegisterProvider(api)

	ctx, cancel := context.WithCancel(ctx)
	var braking sync.WaitGroup
	braking.Go(func() { slow.run(ctx) })
	defer braking.Wait()
	defer cancel()
	return serve(ctx, c, machine, api)
}

// Check refuses settings that a worker cannot work with.
func (c Config) Check() error {
	if c.MaxNodes < 1 {
		return fault.Operator("give 1 or more", "a worker for %d nodes at once would do nothing", c.MaxNodes)
	}
	if !(c.Rate > 0) || math.IsInf(c.Rate, 0) {
		return fault.Operator(fmt.Sprintf("give a number above 0, such as the default of %d", DefaultRate),
			"%v is no rate for the phases that ask the provider", c.Rate)
	}
	return c.Versioning.Check()
}

// serve starts the workers and stops them when the context ends or one of
// them fails.
func serve(ctx context.Context, c Config, workers ...sdk.Worker) error {
	var started []sdk.Worker
	stop := func() {
		done := make(chan struct{}, len(started))
		for _, w := range started {
			go func() { w.Stop(); done <- struct{}{} }()
		}
		for range started {
			<-done
		}
	}
	defer stop()
	for _, w := range workers {
		if err := w.Start(); err != nil {
			return fmt.Errorf("the worker cannot take work from Temporal: %w", err)
		}
		started = append(started, w)
	}
	if err := c.Versioning.announce(ctx, c.Temporal, c.Log); err != nil {
		return err
	}
	c.Log.Info("worker takes work", zap.String("taskQueue", run.TaskQueue), zap.String("namespace", c.Namespace))
	if c.Started != nil {
		c.Started()
	}
	<-ctx.Done()
	c.Log.Info("worker stops, jobs on machines go on")
	return nil
}

func (c Config) options() sdk.Options {
	return sdk.Options{
		MaxConcurrentActivityExecutionSize: c.MaxNodes,
		MaxHeartbeatThrottleInterval:       heartbeatThrottle,
		DefaultHeartbeatThrottleInterval:   heartbeatThrottle,
		WorkflowTaskPollerBehavior: sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{
			InitialNumberOfPollers: pollers, MinimumNumberOfPollers: fewestPollers, MaximumNumberOfPollers: mostPollers,
		}),
		MaxConcurrentActivityTaskPollers: pollers,
		StickyScheduleToStartTimeout:     stickyTimeout,
		WorkerStopTimeout:                stopTimeout,
		DeploymentOptions:                c.Versioning.options(),
	}
}

// activities makes the activities, or says what the worker lacks.
func (c Config) activities() (*activities.Activities, error) {
	agents, err := rescue.FindAgents(c.AgentDirs...)
	if err != nil {
		return nil, err
	}
	for _, missing := range agents.Missing() {
		c.Log.Warn("agent executable missing", zap.String("missing", missing))
	}
	dialer, err := rescue.NewDialer(rescue.Options{KeyFile: c.KeyFile, AgentSocket: c.Socket, Agents: agents, Log: c.Log})
	if err != nil {
		return nil, err
	}
	return activities.New(activities.Config{
		Provider:   c.Provider,
		Dialer:     dialer,
		Identities: c.Identities,
		HTTP:       &http.Client{Timeout: time.Minute},
		Record:     c.Temporal.RecordActivityHeartbeat,
		RunEnded:   c.runEnded,
		Sealed:     c.sealed,
		LotImage:   c.lotImage,
	}), nil
}

// runEnded asks Temporal about a run. One that it does not know counts as
// not ended: it may be another Temporal's.
func (c Config) runEnded(ctx context.Context, workflowID, runID string) (bool, error) {
	d, err := c.Temporal.DescribeWorkflow(ctx, workflowID, runID)
	if notFound := new(serviceerror.NotFound); errors.As(err, &notFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}
