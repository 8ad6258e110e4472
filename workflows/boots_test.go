package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// TestBootThatDoesNotComeIsAskedForAgain: reboots, then power cycles, then a
// person; a retry starts over, and a boot that comes ends the count.
func TestBootThatDoesNotComeIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		waits, asks run.Phase
		policy      run.BootPolicy
		tries       int
	}{
		{run.WaitSSH, run.RebootRescue, run.BootPolicy{}, 3},
		{run.WaitSSH, run.RebootRescue, run.BootPolicy{Reboots: 1}, 1},
		{run.WaitSSH, run.RebootRescue, run.BootPolicy{Reboots: 4, PowerCycles: 2}, 6},
		{run.BootNormal, run.BootNormal, run.BootPolicy{}, 3},
	} {
		s := &script{errs: map[run.Phase][]error{}}
		for range c.tries + 1 {
			s.errs[c.waits] = append(s.errs[c.waits], classed(fault.RescueLost, "nothing answers"))
		}
		env := newEnv(t, s)
		env.RegisterDelayedCallback(func() {
			status := queryNode(t, env)
			require.Equal(t, run.Stuck, status.State)
			require.Equal(t, c.waits, status.Phase)
			require.Contains(t, status.Problem.Message, "gave up after")
			require.Contains(t, status.Problem.Message, "nothing answers")
			require.Len(t, s.inputs[c.asks], c.tries)
			for i, in := range s.inputs[c.asks] {
				require.Equal(t, i, in.Boots)
			}
			update(t, env, run.UpdateRetry, run.RetryRequest{}, "")
		}, 48*time.Hour)
		in := input("n1")
		in.Node.Boot = c.policy
		if c.tries == 1 { // the retry has one try as well
			s.errs[c.waits] = s.errs[c.waits][:1]
		}
		env.ExecuteWorkflow(ProvisionNode, in)
		require.Equal(t, run.Ready, result(t, env).State)
	}
}

func TestBootPolicyCyclesThePowerAfterTheReboots(t *testing.T) {
	t.Parallel()
	p := run.BootPolicy{}
	require.Equal(t, []bool{false, false, true, true}, []bool{p.PowerCycle(0), p.PowerCycle(1), p.PowerCycle(2), p.PowerCycle(3)})
	require.Equal(t, 3, p.Tries())
	require.Equal(t, 2, run.BootPolicy{Reboots: 2}.Tries(), "no power cycle when the lot wants none")
}

// TestPassesAreFenced: every pass has a number of its own, that grows.
func TestPassesAreFenced(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Write: {classed(fault.RescueLost, "gone")}}}
	env := newEnv(t, s)
	env.ExecuteWorkflow(ProvisionNode, input("n1"))
	require.Equal(t, run.Ready, result(t, env).State)
	require.Equal(t, 6, s.inputs[run.Write][0].Pass)
	require.Equal(t, 8, s.inputs[run.Write][1].Pass)
}
