package talos

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/require"
)

func TestUnmet(t *testing.T) {
	t.Parallel()
	machine := func(stage runtime.MachineStage, ready bool, unmet ...runtime.UnmetCondition) state.Event {
		m := runtime.NewMachineStatus()
		m.TypedSpec().Stage = stage
		m.TypedSpec().Status = runtime.MachineStatusStatus{Ready: ready, UnmetConditions: unmet}
		return state.Event{Type: state.Updated, Resource: m}
	}
	name := func(typ state.EventType, skip bool) state.Event {
		n := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
		n.TypedSpec().Nodename, n.TypedSpec().SkipNodeRegistration = "a", skip
		return state.Event{Type: typ, Resource: n}
	}
	node := func(typ state.EventType, id string, ready bool) state.Event {
		n := k8s.NewNodeStatus(k8s.NamespaceName, id)
		n.TypedSpec().NodeReady = ready
		return state.Event{Type: typ, Resource: n}
	}
	up := machine(runtime.MachineStageRunning, true)
	named, listed := name(state.Created, false), state.Event{Type: state.Bootstrapped}

	for what, tc := range map[string]struct {
		events []state.Event
		want   []string
	}{
		"nothing seen":     {nil, []string{"machine: its status is not known yet"}},
		"watches started":  {[]state.Event{up, named}, []string{"machine: its status is not known yet"}},
		"ready":            {[]state.Event{up, named, node(state.Created, "a", true), listed}, nil},
		"maintenance":      {[]state.Event{machine(runtime.MachineStageMaintenance, true), named, node(state.Created, "a", true), listed}, []string{"stage: maintenance"}},
		"not ready":        {[]state.Event{machine(runtime.MachineStageRunning, false), named, node(state.Created, "a", true), listed}, []string{"machine: not ready"}},
		"conditions":       {[]state.Event{machine(runtime.MachineStageRunning, false, runtime.UnmetCondition{Name: "time", Reason: "time is not synced"}), named, node(state.Created, "a", true), listed}, []string{"time: time is not synced"}},
		"no name":          {[]state.Event{up, name(state.Destroyed, false), listed}, []string{"node: it has no name yet"}},
		"another node":     {[]state.Event{up, named, node(state.Created, "b", true), listed}, []string{`node: "a" is not registered in Kubernetes`}},
		"NotReady":         {[]state.Event{up, named, node(state.Created, "a", false), listed}, []string{`node: "a" is not Ready`}},
		"gone":             {[]state.Event{up, named, node(state.Created, "a", true), listed, node(state.Destroyed, "a", true)}, []string{`node: "a" is not registered in Kubernetes`}},
		"never registered": {[]state.Event{up, name(state.Created, true), listed}, []string{"node: the config turns registration in Kubernetes off (skipNodeRegistration)"}},
	} {
		var s snapshot
		for _, event := range tc.events {
			s.take(event)
		}
		require.Equal(t, tc.want, s.unmet(false), what)
	}
}

// State lets tests look at what the watches are given.
func (c *Client) State() state.State { return c.state }
