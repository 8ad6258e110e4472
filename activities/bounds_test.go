package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/rescue/rescuetest"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
)

// TestRescueThatDoesNotCome: when its time is up a person reads what was seen
// last, and the boot is asked for again.
func TestRescueThatDoesNotCome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*testing.T, *bench)
		want   string
	}{
		"silent": {func(t *testing.T, b *bench) { require.NoError(t, b.machine.PowerOff()) }, "nothing listens on the SSH port"},
		"old boot": {func(_ *testing.T, b *bench) { b.in.Facts.SeenBoots = []string{b.in.Facts.Rescue.BootID} },
			"the boot from before the reboot still answers"},
		"another system": {func(_ *testing.T, b *bench) { b.provider = rented{server: provider.Server{RescueUser: "ubuntu"}} },
			`refused the login of user "ubuntu"; check that the worker's SSH key is registered with the provider and that the server runs its rescue system`},
		"provider": {func(_ *testing.T, b *bench) { b.provider = rented{err: fault.Retry("the provider answers 503")} }, "the provider answers 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			c.change(t, b)
			_, err := attempt(t, b.Activities, b.waitSSH, b.in, 0)
			require.ErrorContains(t, err, "no new rescue boot of server em-1 answered SSH at "+b.machine.Address()+" within 30m0s: ")
			require.ErrorContains(t, err, c.want+"; look at the server's console, then retry, which asks for the boot again")
			require.Equal(t, fault.RescueLost, fault.ClassOf(err))
		})
	}
}

// TestProgressTellsUntilWhen an attempt lasts at most, from its first word on.
func TestProgressTellsUntilWhen(t *testing.T) {
	t.Parallel()
	var told run.Progress
	_, err := attempt(t, New(Config{}), func(_ context.Context, b *beat, _ run.PhaseInput) (run.PhaseOutput, error) {
		b.step("waiting")
		b.mu.Lock()
		defer b.mu.Unlock()
		told = b.progress
		return run.PhaseOutput{}, nil
	}, worker1(nil), time.Hour)
	require.NoError(t, err)
	require.WithinDuration(t, told.At.Add(time.Hour), told.Until, time.Minute)
}

// TestServerOnItsWayForTooLong: a status of the provider that passes by
// itself does not keep a phase busy for ever.
func TestServerOnItsWayForTooLong(t *testing.T) {
	t.Parallel()
	a := New(Config{Dialer: rescuetest.Dialer(t), Provider: rented{server: provider.Server{Status: "migrating"}}})
	in := worker1(func(in *run.PhaseInput) { in.Facts.Address, in.Node.TalosPort = split(t, testenv.Nobody()) })
	for _, do := range []phaseFunc{a.rebootRescue, a.bootNormal} {
		_, err := attempt(t, a, do, in, 0)
		require.EqualError(t, err, `server em-1 stayed "migrating" at the provider for too long; look at the server in the provider's console, then retry`)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	}
}

// TestTalosThatDoesNotCome: the boot that was asked for brings none.
func TestTalosThatDoesNotCome(t *testing.T) {
	t.Parallel()
	addr := testenv.Nobody()
	a := New(Config{})
	in := worker1(func(in *run.PhaseInput) { in.Facts.Address, in.Node.TalosPort = split(t, addr) })
	_, err := attempt(t, a, func(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
		return a.waitTalos(ctx, b, in, time.Now(), false)
	}, in, 0)
	require.EqualError(t, err, "no Talos API answered at "+addr+" within 30m0s of the boot from the disk (last seen: closed); "+
		"look at the server's console; `starter retry LOT NODE` boots it again, `starter retry LOT NODE --from reboot-rescue` installs it again")
	require.Equal(t, fault.RescueLost, fault.ClassOf(err))
}

// TestRequestWithoutItsIntent: what Temporal does not keep is not asked for.
func TestRequestWithoutItsIntent(t *testing.T) {
	t.Parallel()
	a := New(Config{Record: func(context.Context, []byte, ...any) error { return errors.New("frontend is away") }})
	_, err := attempt(t, a, func(ctx context.Context, b *beat, _ run.PhaseInput) (run.PhaseOutput, error) {
		_, err := a.ask(ctx, b, run.Intent{Action: "reboot into rescue"}, func(context.Context) error {
			t.Error("the provider was asked")
			return nil
		})
		return run.PhaseOutput{}, err
	}, worker1(nil), time.Minute)
	require.EqualError(t, err, "Temporal did not record the intent to reboot into rescue, so it was not asked for: frontend is away")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
}

// TestWorkerThatStops: the phase goes on elsewhere.
func TestWorkerThatStops(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env, stops := suite.NewTestActivityEnvironment(), make(chan struct{})
	env.SetWorkerStopChannel(stops)
	New(Config{}).register(env, "phase", func(ctx context.Context, _ *beat, _ run.PhaseInput) (run.PhaseOutput, error) {
		close(stops)
		<-ctx.Done()
		return run.PhaseOutput{}, ctx.Err()
	})
	_, err := env.ExecuteActivity("phase", worker1(nil))
	f := asFault(t, err)
	require.EqualError(t, f, "the worker is stopping; another worker goes on")
	require.Equal(t, fault.Transient, f.Class)
}

// TestMachineOutOfReach is waited for, but not for ever.
func TestMachineOutOfReach(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, b.machine.PowerOff())
	b.in.Node.Timeouts.Unreachable = time.Second
	_, err := b.connectPinned(t.Context(), &beat{pace: &pace{}}, b.in)
	require.ErrorContains(t, err, "server em-1 has not answered SSH for ")
	require.ErrorContains(t, err, ": SSH at "+b.machine.Address()+":2222 is not answering: ")
	require.Equal(t, fault.RescueLost, fault.ClassOf(err))
}
