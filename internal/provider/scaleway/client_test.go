package scaleway_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/provider/scaleway"
)

const (
	zone     = "fr-par-2"
	nobody   = "00000000-0000-4000-8000-0000000000ff"
	keyLine  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM6Lfs9IrfEUsw2oALOKucAqjeJo3vdADJAZS0BrJ4Vl somebody@example.com"
	otherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIG4S+vO03k8VY0qdhRThHbyiDFbIqvzH+94x24b4hbQ"
)

// machine is metal that writes down what it is told.
type machine struct {
	mu     sync.Mutex
	told   []string
	rescue hardware.Rescue
}

func (m *machine) tell(what string, rescue hardware.Rescue) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, what)
	m.rescue = rescue
	return nil
}

func (m *machine) PowerOn(boot hardware.BootType, rescue hardware.Rescue) error {
	return m.tell("on "+string(boot), rescue)
}
func (m *machine) PowerOff() error { return m.tell("off", hardware.Rescue{}) }
func (m *machine) Close() error    { return m.tell("close", hardware.Rescue{}) }
func (m *machine) Address() string { return "127.0.10.1" }

// lab is the client against the simulated API.
type lab struct {
	*scaleway.Client
	t       *testing.T
	api     *scwapi.API
	server  scwapi.Server
	machine *machine
	keyID   string

	mu  sync.Mutex
	now time.Time
}

func (l *lab) time() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// pass lets the simulated time go by.
func (l *lab) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

func newLab(t *testing.T, spec scwapi.ServerSpec) *lab {
	t.Helper()
	l := &lab{t: t, machine: &machine{}, now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
	l.api = scwapi.New(scwapi.Options{Now: l.time})
	spec.Name, spec.Zone, spec.Machine = "metal-1", zone, l.machine
	var err error
	l.keyID, err = l.api.AddSSHKey("key", keyLine)
	require.NoError(t, err)
	l.server, err = l.api.AddServer(spec)
	require.NoError(t, err)
	l.Client = newClient(t, serve(t, l.api))
	return l
}

func newClient(t *testing.T, url string) *scaleway.Client {
	t.Helper()
	key := scwapi.DefaultKey()
	c, err := scaleway.New(scaleway.Config{Version: "1.2.3", Timeout: 5 * time.Second,
		Credentials: &scaleway.Credentials{AccessKey: key.AccessKey, SecretKey: key.SecretKey, APIURL: url}})
	require.NoError(t, err)
	return c
}

func (l *lab) describe() provider.Server {
	s, err := l.Describe(context.Background(), zone, l.server.ID)
	require.NoError(l.t, err)
	return s
}

func (l *lab) told() []string {
	l.api.Wait()
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	return slices.Clone(l.machine.told)
}

// refused checks an error's class and that it has words for a person.
func refused(t *testing.T, class fault.Class, err error) *fault.Error {
	t.Helper()
	e, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, class, e.Class, err)
	if class == fault.NeedsOperator {
		assert.NotEmpty(t, e.Remedy, err)
	}
	assert.NotContains(t, err.Error(), "\n")
	assert.NotContains(t, err.Error(), "scaleway-sdk-go")
	assert.NotContains(t, err.Error(), scwapi.DefaultKey().SecretKey)
	return e
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{Protected: true, Addresses: []string{"2001:db8::1", "203.0.113.7"}, Tags: []string{"rack-1"}})
	assert.Equal(t, provider.Server{
		ID: l.server.ID, Name: "metal-1", Zone: zone, Status: "ready", Settled: true, Usable: true,
		BootType: provider.BootNormal, Protected: true, Addresses: []string{"203.0.113.7", "2001:db8::1"},
		Tags: []string{"rack-1", scwapi.LabTag},
	}, l.describe())
	assert.Empty(t, l.told())
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[string][2]bool{ // settled, usable
		"ready": {true, true}, "stopped": {true, false}, "error": {true, false}, "locked": {true, false},
		"unknown": {true, false}, "out_of_stock": {true, false}, "something_new": {true, false},
		"delivering": {false, false}, "ordered": {false, false}, "stopping": {false, false}, "starting": {false, false},
		"deleting": {false, false}, "resetting": {false, false}, "migrating": {false, false},
	} {
		s := newLab(t, scwapi.ServerSpec{Status: status}).describe()
		assert.Equal(t, want, [2]bool{s.Settled, s.Usable}, status)
		assert.Equal(t, status, s.Status)
	}
}

func TestRebootIntoRescue(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{})
	ctx := context.Background()
	_, err := l.RescuePassword(ctx, zone, l.server.ID)
	refused(t, fault.Transient, err)

	ids, err := l.SSHKeyIDs(ctx, []string{otherKey, keyLine})
	require.NoError(t, err)
	assert.Equal(t, []string{l.keyID}, ids)
	require.NoError(t, l.Reboot(ctx, zone, l.server.ID, provider.BootRescue, ids))
	now := l.describe()
	assert.Equal(t, "stopping", now.Status)
	assert.False(t, now.Settled)
	assert.Equal(t, provider.BootRescue, now.BootType)
	assert.Equal(t, "rescue", now.RescueUser)
	l.pass(time.Minute)
	assert.True(t, l.describe().Usable)
	assert.Equal(t, []string{"on rescue"}, l.told())
	assert.Equal(t, []string{keyLine}, l.machine.rescue.AuthorizedKeys)

	password, err := l.RescuePassword(ctx, zone, l.server.ID)
	require.NoError(t, err)
	assert.Equal(t, l.machine.rescue.Password, password)
	require.NoError(t, l.Reboot(ctx, zone, l.server.ID, provider.BootNormal, nil))
	_, err = l.RescuePassword(ctx, zone, l.server.ID)
	e := refused(t, fault.Transient, err)
	assert.NotContains(t, e.Error(), password)
	assert.Equal(t, map[string]int{"rescue": 1, "normal": 1}, l.server.Counters().Reboots)
}

func TestStopAndStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{})
	ctx := context.Background()
	require.NoError(t, l.Stop(ctx, zone, l.server.ID))
	l.pass(time.Minute)
	assert.Equal(t, "stopped", l.describe().Status)
	require.NoError(t, l.Start(ctx, zone, l.server.ID, provider.BootNormal, nil))
	l.pass(time.Minute)
	assert.True(t, l.describe().Usable)
	assert.Equal(t, []string{"off", "on normal"}, l.told())
}

func TestNothingIsSentThatCannotBe(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{})
	ctx := context.Background()
	for _, boot := range []provider.BootType{"", "unknown_boot_type", "Rescue"} {
		refused(t, fault.NeedsOperator, l.Reboot(ctx, zone, l.server.ID, boot, nil))
		refused(t, fault.NeedsOperator, l.Start(ctx, zone, l.server.ID, boot, nil))
	}
	for _, place := range [][2]string{{"", l.server.ID}, {"fr-par-2/../..", l.server.ID}, {zone, ""}, {zone, "../servers"}} {
		_, err := l.Describe(ctx, place[0], place[1])
		refused(t, fault.NeedsOperator, err)
		_, err = l.Networks(ctx, place[0], place[1])
		refused(t, fault.NeedsOperator, err)
		refused(t, fault.NeedsOperator, l.Reboot(ctx, place[0], place[1], provider.BootRescue, nil))
		refused(t, fault.NeedsOperator, l.Stop(ctx, place[0], place[1]))
	}
	assert.Empty(t, l.told())
	assert.Equal(t, scwapi.Counters{Reboots: map[string]int{}}, l.server.Counters())
}

// The API refuses with a plain 400 and a text; the class comes from the
// server's state.
func TestRefusedWhileThePassingStateLasts(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{Status: "delivering"})
	e := refused(t, fault.Transient, l.Reboot(context.Background(), zone, l.server.ID, provider.BootRescue, nil))
	assert.Contains(t, e.Message, "delivering")
	assert.False(t, provider.MaybeDone(e))
	assert.Empty(t, l.told())
}

func TestRefusedInOtherStates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locked := newLab(t, scwapi.ServerSpec{Status: "locked"})
	refused(t, fault.NeedsOperator, locked.Reboot(ctx, zone, locked.server.ID, provider.BootRescue, nil))
	passing := newLab(t, scwapi.ServerSpec{Status: "migrating"})
	refused(t, fault.Transient, passing.Stop(ctx, zone, passing.server.ID))
	refused(t, fault.NeedsOperator, passing.Reboot(ctx, zone, nobody, provider.BootRescue, nil))
	_, err := passing.Describe(ctx, "nl-ams-1", passing.server.ID)
	refused(t, fault.NeedsOperator, err)
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{Networks: []scwapi.Network{{ID: nobody, VLAN: 1891}, {VLAN: 7}}})
	found, err := l.Networks(context.Background(), zone, l.server.ID)
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, provider.Network{ID: nobody, VLAN: 1891, Status: "attached"}, found[0])
	none, err := l.Networks(context.Background(), zone, nobody)
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestSSHKeyIDs(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{})
	ctx := context.Background()
	for range 110 { // more than a page
		_, err := l.api.AddSSHKey("same", keyLine)
		require.NoError(t, err)
	}
	last, err := l.api.AddSSHKey("other", otherKey+" comment")
	require.NoError(t, err)
	ids, err := l.SSHKeyIDs(ctx, []string{otherKey, keyLine})
	require.NoError(t, err)
	assert.Equal(t, []string{last, l.keyID}, ids, "one ID for each key, in the keys' order, comments aside")
	_, err = l.SSHKeyIDs(ctx, []string{keyLine, "not a key"})
	e := refused(t, fault.NeedsOperator, err)
	assert.Contains(t, e.Message, "2 of 2")
	none, err := l.SSHKeyIDs(ctx, nil)
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestClientIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	l := newLab(t, scwapi.ServerSpec{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, err := l.SSHKeyIDs(context.Background(), []string{keyLine})
			assert.NoError(t, err)
			_, err = l.Describe(context.Background(), zone, l.server.ID)
			assert.NoError(t, err)
		})
	}
	group.Wait()
}

// serve serves a simulated API.
func serve(t *testing.T, api *scwapi.API) string {
	t.Helper()
	served := httptest.NewServer(api.Handler())
	t.Cleanup(served.Close)
	return served.URL
}
