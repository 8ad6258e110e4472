package scwapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
)

const testZone = "fr-par-2"

// machine is metal that writes down what it is told.
type machine struct {
	mu      sync.Mutex
	told    []string
	rescues []hardware.Rescue
	err     error
	held    chan struct{} // when not nil, commands wait for it
}

func (m *machine) do(what string) error {
	if m.held != nil {
		<-m.held
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, what)
	return m.err
}

func (m *machine) PowerOn(boot hardware.BootType, rescue hardware.Rescue) error {
	m.mu.Lock()
	m.rescues = append(m.rescues, rescue)
	m.mu.Unlock()
	return m.do("on " + string(boot))
}

func (m *machine) PowerOff() error { return m.do("off") }
func (m *machine) Close() error    { return m.do("close") }
func (m *machine) Address() string { return "127.0.10.1" }

// lab is a simulator over HTTP with one server and a clock.
type lab struct {
	t       *testing.T
	api     *scwapi.API
	url     string
	clock   *clock
	machine *machine
	server  scwapi.Server
	keyID   string
}

func newLab(t *testing.T, change func(*scwapi.Options, *scwapi.ServerSpec)) *lab {
	t.Helper()
	l := &lab{t: t, clock: &clock{now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}, machine: &machine{}}
	opt := scwapi.Options{Now: l.clock.Now}
	spec := scwapi.ServerSpec{Name: "metal-1", Zone: testZone, Machine: l.machine}
	if change != nil {
		change(&opt, &spec)
	}
	l.api = scwapi.New(opt)
	var err error
	l.keyID, err = l.api.AddSSHKey("key", testKey)
	require.NoError(t, err)
	l.server, err = l.api.AddServer(spec)
	require.NoError(t, err)
	served := httptest.NewServer(l.api.Handler())
	t.Cleanup(served.Close)
	l.url = served.URL
	return l
}

// pass lets time go by.
func (l *lab) pass(d time.Duration) { l.clock.forward(l.clock.Now().Add(d)) }

// call sends a request and decodes the answer.
func (l *lab) call(method, path string, body any) (int, map[string]any) {
	l.t.Helper()
	code, answer, err := l.try(method, path, body, scwapi.DefaultKey().SecretKey)
	require.NoError(l.t, err)
	return code, answer
}

func (l *lab) try(method, path string, body any, token string) (int, map[string]any, error) {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		require.NoError(l.t, err)
		sent = bytes.NewReader(encoded)
	}
	req, err := http.NewRequest(method, l.url+path, sent)
	require.NoError(l.t, err)
	if token != "" {
		req.Header.Set("X-Auth-Token", token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	if answer == nil {
		answer = map[string]any{}
	}
	answer["Retry-After"] = resp.Header.Get("Retry-After")
	return resp.StatusCode, answer, nil
}

func (l *lab) path(rest string) string {
	return "/baremetal/v1/zones/" + testZone + "/servers/" + l.server.ID + rest
}

func (l *lab) get() map[string]any {
	code, s := l.call("GET", l.path(""), nil)
	require.Equal(l.t, http.StatusOK, code)
	return s
}

func (l *lab) reboot(boot string) (int, map[string]any) {
	return l.call("POST", l.path("/reboot"), map[string]any{"boot_type": boot, "ssh_key_ids": []string{l.keyID}})
}

// told gives what the machine was told, once it has done it all.
func (l *lab) told() []string {
	l.api.Wait()
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	return slices.Clone(l.machine.told)
}

func TestRebootIntoRescue(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)

	code, answer := l.reboot("rescue")
	require.Equal(t, http.StatusOK, code)
	assert.Equal(t, "stopping", answer["status"])
	assert.Equal(t, "rescue", answer["boot_type"])
	assert.Equal(t, "ping_status_up", answer["ping_status"])
	l.pass(time.Second)
	assert.Equal(t, "stopping", l.get()["status"], "before it has settled")
	l.pass(2 * time.Second)
	now := l.get()
	assert.Equal(t, "ready", now["status"])
	assert.Equal(t, "ping_status_up", now["ping_status"])

	assert.Equal(t, []string{"on rescue"}, l.told())
	shown, ok := now["rescue_server"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, "rescue", shown["user"])
	assert.Equal(t, hardware.Rescue{User: "rescue", Password: shown["password"].(string), AuthorizedKeys: []string{testKey}},
		l.machine.rescues[0])

	_, again := l.reboot("rescue")
	assert.NotEqual(t, shown["password"], again["rescue_server"].(map[string]any)["password"], "a password for each boot")
	l.pass(2 * time.Second)
	_, normal := l.reboot("normal")
	assert.Nil(t, normal["rescue_server"])
	assert.Equal(t, []string{"on rescue", "on rescue", "on normal"}, l.told())
	assert.Equal(t, hardware.Rescue{}, l.machine.rescues[2])
	assert.Equal(t, scwapi.Counters{Reboots: map[string]int{"rescue": 2, "normal": 1}}, l.server.Counters())
}

func TestUnknownBootTypeKeepsTheOneBefore(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(_ *scwapi.Options, s *scwapi.ServerSpec) { s.BootType = hardware.BootRescue })
	_, answer := l.reboot("unknown_boot_type")
	assert.Equal(t, "rescue", answer["boot_type"])
	assert.Equal(t, []string{"on rescue", "on rescue"}, l.told(), "once from the start, once by the reboot")
	assert.Equal(t, map[string]int{"unknown_boot_type": 1}, l.server.Counters().Reboots)
}

func TestStopAndStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	_, answer := l.call("POST", l.path("/stop"), map[string]any{})
	assert.Equal(t, "stopping", answer["status"])
	l.pass(2 * time.Second)
	assert.Equal(t, "stopped", l.get()["status"])
	code, _ := l.reboot("rescue")
	assert.Equal(t, http.StatusPreconditionFailed, code, "a stopped server is started, not rebooted")
	_, answer = l.call("POST", l.path("/start"), map[string]any{"boot_type": "normal"})
	assert.Equal(t, "starting", answer["status"])
	l.pass(2 * time.Second)
	assert.Equal(t, "ready", l.get()["status"])
	assert.Equal(t, []string{"off", "on normal"}, l.told())
	c := l.server.Counters()
	assert.Equal(t, []int{1, 1, 1}, []int{c.Starts, c.Stops, c.Refused})
}

func TestRefusedActionsDoNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status, boot string
		key          string
		code         int
		body         map[string]any
	}{
		"not delivered": {status: "delivering", boot: "rescue", code: 400, body: map[string]any{"message": "Server is not delivered"}},
		"passing":       {status: "migrating", boot: "rescue", code: 409, body: map[string]any{"type": "transient_state", "current_state": "migrating"}},
		"locked":        {status: "locked", boot: "rescue", code: 412, body: map[string]any{"type": "precondition_failed"}},
		"no boot type":  {status: "ready", boot: "floppy", code: 400, body: map[string]any{"type": "invalid_arguments"}},
		"unknown key":   {status: "ready", boot: "rescue", key: recordedID("ff"), code: 404, body: map[string]any{"type": "not_found", "resource": "ssh_key"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(_ *scwapi.Options, s *scwapi.ServerSpec) { s.Status = tc.status })
			keys := []string{}
			if tc.key != "" {
				keys = []string{tc.key}
			}
			code, answer := l.call("POST", l.path("/reboot"), map[string]any{"boot_type": tc.boot, "ssh_key_ids": keys})
			assert.Equal(t, tc.code, code)
			for k, v := range tc.body {
				assert.Equal(t, v, answer[k])
			}
			assert.Empty(t, l.told())
			assert.Equal(t, tc.status, l.get()["status"])
			assert.Equal(t, scwapi.Counters{Reboots: map[string]int{}, Refused: 1}, l.server.Counters())
		})
	}
}

func TestProtectedServerIsNotDeleted(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(_ *scwapi.Options, s *scwapi.ServerSpec) { s.Protected = true })
	code, _ := l.call("DELETE", l.path(""), nil)
	assert.Equal(t, http.StatusPreconditionFailed, code)
	assert.Empty(t, l.told())
	l.call("PATCH", l.path(""), map[string]any{"protected": false})
	code, _ = l.call("DELETE", l.path(""), nil)
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, []string{"close"}, l.told())
	l.pass(time.Minute)
	code, answer := l.call("GET", l.path(""), nil)
	assert.Equal(t, http.StatusNotFound, code)
	assert.Equal(t, "Not Found", answer["message"])
}

func TestUserDataThatIsNotCloudInit(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	code, answer := l.call("PATCH", l.path(""), map[string]any{"user_data": []byte("#!ipxe\nchain http://example.com")})
	assert.Equal(t, http.StatusServiceUnavailable, code, "as recorded: 503, although it never passes")
	assert.NotContains(t, answer, "type")
	assert.Nil(t, l.get()["user_data"])
	code, _ = l.call("PATCH", l.path(""), map[string]any{"user_data": []byte("#cloud-config\n")})
	assert.Equal(t, http.StatusOK, code)
}

func TestMachineCommandsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.machine.held = make(chan struct{})
	for _, boot := range []string{"rescue", "normal", "rescue"} {
		code, _ := l.reboot(boot)
		require.Equal(t, http.StatusOK, code, "the API does not wait for the machine")
		l.pass(2 * time.Second)
	}
	close(l.machine.held)
	assert.Equal(t, []string{"on rescue", "on normal", "on rescue"}, l.told())
}

func TestFailingMachineShowsAsError(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.machine.err = errors.New("no power")
	l.reboot("rescue")
	l.told()
	l.pass(time.Minute)
	assert.Equal(t, "error", l.get()["status"])
	assert.Equal(t, 1, l.server.Counters().Failed)
}
