package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// worker1 is a node of the tests.
func worker1(change func(*run.PhaseInput)) run.PhaseInput {
	in := run.PhaseInput{
		Node:  run.Node{Name: "worker-1", ServerID: "id", ServerName: "em-1", TalosPort: 50000},
		Facts: run.Facts{Address: "192.0.2.1"},
	}
	if change != nil {
		change(&in)
	}
	return in
}

// TestRefusalsOfPreflight: each says what, where, and what to do.
func TestRefusalsOfPreflight(t *testing.T) {
	t.Parallel()
	server := provider.Server{Name: "em-1", Status: "ready", Settled: true, Usable: true, Addresses: []string{"192.0.2.1"}}
	changed := func(change func(*provider.Server)) error {
		s := server
		change(&s)
		return checkServer(worker1(nil), s)
	}
	networks := []provider.Network{{ID: "a", VLAN: 1083, Status: "attached"}, {ID: "b", VLAN: 2000, Status: "attached"}}
	for want, err := range map[string]error{
		`server id is called "em-2" at the provider, the lot says "em-1"; correct the id or the name in the lot file, so that no other server is erased`:                                  changed(func(s *provider.Server) { s.Name = "em-2" }),
		"server em-1 is protected at the provider; take the protection off in the provider's console if it may be erased":                                                                 changed(func(s *provider.Server) { s.Protected = true }),
		"server em-1 has no public address; give it a public address at the provider":                                                                                                     changed(func(s *provider.Server) { s.Addresses = nil }),
		"the config has VLAN 7, which server em-1 does not have; attach the private network at the provider or correct the VLAN in the config; the server's VLANs are: 1083, 2000":        checkVLANs("em-1", []uint32{7}, networks),
		"the config has VLAN 7, which server em-1 does not have; attach the private network at the provider or correct the VLAN in the config; the server's VLANs are: none":              checkVLANs("em-1", []uint32{7}, nil),
		"the config of server em-1 has 2 VLANs ([1083 2000]), with which nodes have been seen not to join; keep the one VLAN by which the node joins; the server's VLANs are: 1083, 2000": checkVLANs("em-1", []uint32{1083, 2000}, networks),
	} {
		require.EqualError(t, err, want)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	}
}

// keyless is a provider that knows no SSH key.
type keyless struct{ provider.Provider }

func (keyless) SSHKeyIDs(context.Context, []string) ([]string, error) { return nil, nil }

func TestWorkerWithoutARegisteredKey(t *testing.T) {
	t.Parallel()
	a := New(Config{Provider: keyless{}, Dialer: &rescue.Dialer{}})
	require.EqualError(t, a.checkKeys(t.Context()),
		"the provider knows none of the worker's SSH keys, so nobody could log in to rescue; register the worker's public key with the provider (`scw iam ssh-key create`)")
}

func TestRunWithoutAConfig(t *testing.T) {
	t.Parallel()
	_, err := New(Config{}).open(worker1(nil))
	require.EqualError(t, err, "the run of node worker-1 carries no machine config; start the run again with this release's starter")
}

// TestApplyConfigThatDoesNotEnd: what was done and what was seen decides what
// the person reads.
func TestApplyConfigThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	byState := func(in *run.PhaseInput) { in.Node.Delivery = run.ByState }
	now := time.Now()
	seen := talos.Observation{State: talos.Silent}
	for name, c := range map[string]struct {
		p    *applying
		want []string
	}{
		"never sent": {&applying{in: worker1(nil)}, []string{
			"the Talos API of node worker-1 at 192.0.2.1:50000 took no config within 10m0s (last seen: silent)", "`starter retry LOT NODE --from boot-normal` boots it again"}},
		"sent": {&applying{in: worker1(nil), sent: now}, []string{
			"node worker-1 at 192.0.2.1:50000 was sent its config and did not show within 10m0s that it runs it", "repeats nothing blindly"}},
		"in STATE": {&applying{in: worker1(byState)}, []string{
			"did not show within 10m0s that it runs the config in STATE", "`starter retry LOT NODE --from reboot-rescue` installs it again"}},
		"another's": {&applying{in: worker1(nil), sent: now, foreign: now}, []string{
			"ALARM: the node at 192.0.2.1:50000 runs a config of another cluster than the lot's: somebody else's config reached it while maintenance was open",
			"treat the machine as in somebody else's hands"}},
		"another's, by STATE": {&applying{in: worker1(byState), foreign: now}, []string{
			"an old STATE on another of its disks took it over, or another machine has this address"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.p.late(seen)
			require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
			for _, part := range c.want {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

// TestConfigThatWasTaken: an attempt that knows from the one before that the node
// took the config waits for its API no longer than that one would have. Not
// knowing it, it waits on, and in maintenance it sends nothing again too soon.
func TestConfigThatWasTaken(t *testing.T) {
	t.Parallel()
	sent := time.Now().Add(-provesWithin - time.Second)
	for name, c := range map[string]struct {
		intent *run.Intent
		seen   talos.APIState
		done   bool
	}{
		"taken, the API is closed":        {&run.Intent{At: sent, Sent: true}, talos.Resetting, true},
		"taken a moment ago":              {&run.Intent{At: time.Now(), Sent: true}, talos.Resetting, false},
		"the answer is not known":         {&run.Intent{At: sent}, talos.Resetting, false},
		"nothing was sent":                {nil, talos.Resetting, false},
		"taken, and still in maintenance": {&run.Intent{At: sent, Sent: true}, talos.Maintenance, false},
		"sent, and still in maintenance":  {&run.Intent{At: sent}, talos.Maintenance, false},
	} {
		p := &applying{in: worker1(nil), secrets: &secrets{config: &talos.Rendered{SHA256: "0123456789abcdef"}}, commit: func(*run.Intent) error {
			t.Errorf("%s: sent again", name)
			return nil
		}}
		p.recall(c.intent)
		out, done, err := p.step(t.Context(), talos.Observation{State: c.seen})
		require.NoError(t, err, name)
		require.Equal(t, c.done, done, name)
		if done {
			require.Equal(t, "0123456789abcdef", out.Facts.Applied.ConfigSHA256)
			require.False(t, out.Facts.Applied.Already)
		}
	}
}

func TestMaintenanceInSpiteOfSTATE(t *testing.T) {
	t.Parallel()
	_, done, err := (&applying{in: worker1(func(in *run.PhaseInput) { in.Node.Delivery = run.ByState })}).
		step(t.Context(), talos.Observation{State: talos.Maintenance})
	require.False(t, done)
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.ErrorContains(t, err, "node worker-1 at 192.0.2.1:50000 waits in maintenance, open to everybody, although its config was written into STATE; nothing was sent to it")
}

func TestReadyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	w := &readiness{in: worker1(nil), unmet: []string{"services: kubelet not running", `kubernetes: there is no node "worker-1"`}}
	require.EqualError(t, w.late(), `node worker-1 was not Ready within 30m0s: services: kubelet not running; kubernetes: there is no node "worker-1"; `+
		"look why with `talosctl -n 192.0.2.1 -e 192.0.2.1 service` and `talosctl -n 192.0.2.1 -e 192.0.2.1 dmesg`, mend it, then retry, which goes on waiting")
	w.unmet = []string{"api: connection refused"}
	require.ErrorContains(t, w.late(), "node worker-1 was not Ready within 30m0s: api: connection refused; look at its console at the provider: a VLAN")
	require.ErrorContains(t, w.late(), "`starter abort LOT NODE` and, when the lot has ended, `starter provision --batch LOT.YAML --node NODE`", "the lot and the node are put in where it is shown")
}
