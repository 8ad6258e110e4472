package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// corrected is the input with a change.
func corrected(change func(*run.NodeInput)) *run.NodeInput {
	in := lotNode()
	change(&in)
	return &in
}

func lotNode() run.NodeInput {
	in := input("n1")
	in.Node.Image = run.Image{URL: "http://images/talos.raw", RawSHA256: "aa"}
	in.Node.Disks = run.DiskPolicy{System: run.DiskChoice{Smallest: true}, Secondary: run.Blank}
	in.Sealed.Digest = "d1"
	return in
}

// TestCorrectedInputGoesBackToPreflight: every corrected retry is checked
// first, and then goes on as early as the change concerns, no earlier.
func TestCorrectedInputGoesBackToPreflight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stuck  run.Phase
		change func(*run.NodeInput)
		next   run.Phase
	}{
		"digest, stuck in stage":          {run.Stage, func(in *run.NodeInput) { in.Node.Image.RawSHA256 = "bb" }, run.Stage},
		"digest, stuck in write":          {run.Write, func(in *run.NodeInput) { in.Node.Image.RawSHA256 = "bb" }, run.Stage},
		"digest, rescue is left":          {run.ApplyConfig, func(in *run.NodeInput) { in.Node.Image.RawSHA256 = "bb" }, run.RebootRescue},
		"config, stuck in stage":          {run.Stage, func(in *run.NodeInput) { in.Sealed.Config, in.Sealed.Digest = "new", "d2" }, run.Stage},
		"config, stuck in apply-config":   {run.ApplyConfig, func(in *run.NodeInput) { in.Sealed.Config, in.Sealed.Digest = "new", "d2" }, run.ApplyConfig},
		"config, stuck in wait-ready":     {run.WaitReady, func(in *run.NodeInput) { in.Sealed.Config, in.Sealed.Digest = "new", "d2" }, run.ApplyConfig},
		"config sealed anew, wait-ready":  {run.WaitReady, func(in *run.NodeInput) { in.Sealed.Config, in.Sealed.Own = "again", "again" }, run.WaitReady},
		"kubeconfig, stuck in wait-ready": {run.WaitReady, func(in *run.NodeInput) { in.Sealed.Kubeconfig = "new" }, run.WaitReady},
		"kubeconfig, stuck in stage":      {run.Stage, func(in *run.NodeInput) { in.Sealed.Kubeconfig = "new" }, run.Stage},
		"talosconfig, apply-config":       {run.ApplyConfig, func(in *run.NodeInput) { in.Sealed.Talosconfig = "new" }, run.ApplyConfig},
		"vlan, stuck in wait-ready":       {run.WaitReady, func(in *run.NodeInput) { in.Node.VLAN = run.VLANAuto }, run.ApplyConfig},
		"timeout, stuck in boot-normal":   {run.BootNormal, func(in *run.NodeInput) { in.Node.Timeouts.NormalBoot = time.Hour }, run.BootNormal},
		"disk, before any is erased":      {run.WaitSSH, func(in *run.NodeInput) { in.Node.Disks.System = run.DiskChoice{Serial: "S2"} }, run.RebootRescue},
		"server name, stuck in preflight": {run.Preflight, func(in *run.NodeInput) { in.Node.ServerName = "right" }, run.RebootRescue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{errs: map[run.Phase][]error{c.stuck: {classed(fault.NeedsOperator, "no")}}}
			env := newEnv(t, s)
			env.RegisterDelayedCallback(func() {
				update(t, env, run.UpdateRetry, run.RetryRequest{Input: corrected(c.change)}, "")
			}, time.Hour)
			env.ExecuteWorkflow(ProvisionNode, lotNode())
			require.Equal(t, run.Ready, result(t, env).State)
			at := position(table(), c.stuck) + 1
			require.Equal(t, []run.Phase{run.Preflight, c.next}, s.calls[at:at+2])
			checked := s.inputs[run.Preflight][1]
			require.Equal(t, corrected(c.change).Node, checked.Node)
			require.True(t, checked.TakesConfig)
			if want := corrected(c.change).Sealed; want == lotNode().Sealed {
				require.Nil(t, checked.Sealed, "it is that of the run's input")
			} else {
				require.Equal(t, want, *checked.Sealed)
			}
		})
	}
}

// TestCorrectedInputThatPreflightRefusesTouchesNothing: stuck in preflight
// then, and the server as it was.
func TestCorrectedInputThatPreflightRefusesTouchesNothing(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Stage: {classed(fault.NeedsOperator, "digest")}}}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(func() {
		s.errs[run.Preflight] = []error{classed(fault.NeedsOperator, "404")}
		update(t, env, run.UpdateRetry, run.RetryRequest{Input: corrected(func(in *run.NodeInput) { in.Node.Image.URL = "http://wrong" })}, "")
	}, time.Hour)
	env.RegisterDelayedCallback(func() {
		status := queryNode(t, env)
		require.Equal(t, run.Stuck, status.State)
		require.Equal(t, run.Preflight, status.Phase)
		require.Equal(t, []run.Phase{run.Stage, run.Preflight}, s.calls[len(s.calls)-2:])
		require.Contains(t, status.Problem.Erased, "are erased", "what was erased before is not forgotten")
		update(t, env, run.UpdateRetry, run.RetryRequest{Input: corrected(func(*run.NodeInput) {})}, "")
	}, 2*time.Hour)
	env.ExecuteWorkflow(ProvisionNode, lotNode())
	require.Equal(t, run.Ready, result(t, env).State)
}

// TestErasedDiskIsKept: once disks may be erased, no correction moves the run
// to another one unless that is said.
func TestErasedDiskIsKept(t *testing.T) {
	t.Parallel()
	disk := func(rule run.DiskChoice, secondary run.Secondary) *run.NodeInput {
		return corrected(func(in *run.NodeInput) { in.Node.Disks = run.DiskPolicy{System: rule, Secondary: secondary} })
	}
	s := &script{errs: map[run.Phase][]error{run.DiskPrep: {
		classed(fault.NeedsOperator, "one"), classed(fault.NeedsOperator, "two"), classed(fault.NeedsOperator, "three")}}}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(func() {
		update(t, env, run.UpdateRetry, run.RetryRequest{Input: disk(run.DiskChoice{Serial: "S2"}, run.Blank)}, "--another-disk")
		update(t, env, run.UpdateRetry, run.RetryRequest{Input: disk(run.DiskChoice{}, run.Blank)}, "no rule")
		update(t, env, run.UpdateRetry, run.RetryRequest{Input: disk(run.DiskChoice{Serial: "S1"}, run.Blank)}, "")
	}, time.Hour)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, run.DiskChoice{Serial: "S1"}, s.inputs[run.WaitSSH][1].Node.Disks.System)
		update(t, env, run.UpdateRetry, run.RetryRequest{Input: disk(run.DiskChoice{Serial: "S1"}, run.Keep)}, "")
	}, 2*time.Hour)
	env.RegisterDelayedCallback(func() {
		in := s.inputs[run.WaitSSH][2]
		require.Equal(t, run.DiskPolicy{System: run.DiskChoice{Serial: "S1"}, Secondary: run.Keep}, in.Node.Disks)
		require.Nil(t, in.Facts.System, "chosen anew, by a rule that fits the same disk alone")
		update(t, env, run.UpdateRetry, run.RetryRequest{Input: disk(run.DiskChoice{Serial: "S2"}, run.Blank), AnotherDisk: true}, "")
	}, 3*time.Hour)
	env.ExecuteWorkflow(ProvisionNode, lotNode())
	require.Equal(t, run.Ready, result(t, env).State)
	require.Equal(t, run.DiskChoice{Serial: "S2"}, s.inputs[run.WaitSSH][3].Node.Disks.System)
}

func TestNonsenseInputIsRefused(t *testing.T) {
	t.Parallel()
	s := &script{errs: map[run.Phase][]error{run.Stage: {classed(fault.NeedsOperator, "digest")}}}
	env := newEnv(t, s)
	env.RegisterDelayedCallback(func() {
		for refusal, r := range map[string]run.RetryRequest{
			"is for node n2":   {Input: corrected(func(in *run.NodeInput) { in.Node.Name = "n2" })},
			"on server other":  {Input: corrected(func(in *run.NodeInput) { in.Node.ServerID = "other" })},
			"names no image":   {Input: corrected(func(in *run.NodeInput) { in.Node.Image.URL = "" })},
			"give both":        {Input: corrected(func(in *run.NodeInput) { in.Sealed.Config = "" })},
			"leave out the ph": {From: run.Stage, Input: corrected(func(*run.NodeInput) {})},
		} {
			update(t, env, run.UpdateRetry, r, refusal)
		}
		require.Len(t, s.calls, 5, "nothing was started")
		env.SignalWorkflow(run.UpdateRetry, run.RetryRequest{From: "nonsense"})
	}, time.Hour)
	env.RegisterDelayedCallback(func() {
		status := queryNode(t, env)
		require.Equal(t, run.Stuck, status.State)
		require.Contains(t, status.Notice, `there is no phase "nonsense"`)
		require.Contains(t, details(status), status.Notice)
		// Without secrets in it the ones that the run has stay.
		in := corrected(func(in *run.NodeInput) { in.Sealed = run.Sealed{} })
		env.SignalWorkflow(run.UpdateRetry, run.RetryRequest{Input: in})
	}, 2*time.Hour)
	env.ExecuteWorkflow(ProvisionNode, lotNode())
	status := result(t, env)
	require.Equal(t, run.Ready, status.State)
	require.Empty(t, status.Notice)
	require.True(t, s.inputs[run.ApplyConfig][0].TakesConfig)
	require.Nil(t, s.inputs[run.ApplyConfig][0].Sealed, "it is that of the run's input")
}

func TestAbortNamesTheStateOfTheServer(t *testing.T) {
	t.Parallel()
	for phase, left := range map[run.Phase]run.Left{
		run.Preflight: run.LeftUntouched, run.WaitSSH: run.LeftRescue, run.Write: run.LeftRescue,
		run.BootNormal: run.LeftWritten, run.ApplyConfig: run.LeftMaintenance, run.WaitReady: run.LeftConfigured,
	} {
		s := &script{errs: map[run.Phase][]error{phase: {classed(fault.NeedsOperator, "no")}}}
		env := newEnv(t, s)
		env.RegisterDelayedCallback(func() { signalAbort(env) }, time.Hour)
		env.ExecuteWorkflow(ProvisionNode, lotNode())
		problem := result(t, env).Problem
		require.Equal(t, left, problem.Left)
		require.Equal(t, left.Remedy(lotNode().Node), problem.Remedy)
	}
}
