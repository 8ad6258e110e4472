package scwapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab/scwapi"
)

func (l *lab) fault(f scwapi.Fault) { require.NoError(l.t, l.api.AddFault(f)) }

func TestRateLimit(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.fault(scwapi.Fault{Kind: scwapi.RateLimit, Times: 1, RetryAfter: 1500 * time.Millisecond})
	l.fault(scwapi.Fault{Kind: scwapi.RateLimit, Times: 1})
	code, answer := l.reboot("rescue")
	assert.Equal(t, http.StatusTooManyRequests, code)
	assert.Equal(t, "2", answer["Retry-After"])
	code, answer = l.reboot("rescue")
	assert.Equal(t, http.StatusTooManyRequests, code)
	assert.Empty(t, answer["Retry-After"])
	assert.Empty(t, l.told(), "a limited request does nothing")
	code, _ = l.reboot("rescue")
	assert.Equal(t, http.StatusOK, code)
}

func TestServerErrors(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.fault(scwapi.Fault{Kind: scwapi.ServerError, Operation: "RebootServer", Times: 1})
	l.fault(scwapi.Fault{Kind: scwapi.ServerError, Operation: "RebootServer", Times: 1, Status: 502})
	assert.Equal(t, "ready", l.get()["status"], "other operations go on")
	code, answer := l.reboot("rescue")
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Equal(t, "internal error", answer["message"])
	code, _ = l.reboot("rescue")
	assert.Equal(t, http.StatusBadGateway, code)
	assert.Empty(t, l.told())
}

func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.fault(scwapi.Fault{Kind: scwapi.Reset, Operation: "RebootServer", Times: 1})
	_, _, err := l.try("POST", l.path("/reboot"), map[string]any{"boot_type": "rescue"}, scwapi.DefaultKey().SecretKey)
	require.Error(t, err)
	assert.Empty(t, l.told())
	l.fault(scwapi.Fault{Kind: scwapi.LostAnswer, Operation: "RebootServer", Times: 1})
	_, _, err = l.try("POST", l.path("/reboot"), map[string]any{"boot_type": "rescue"}, scwapi.DefaultKey().SecretKey)
	require.Error(t, err)
	assert.Equal(t, []string{"on rescue"}, l.told(), "only the answer is lost")
}

func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.fault(scwapi.Fault{Kind: scwapi.Slow, Times: 1, Delay: 50 * time.Millisecond})
	before := time.Now()
	l.get()
	assert.GreaterOrEqual(t, time.Since(before), 50*time.Millisecond)
}

func TestRebootIgnored(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.fault(scwapi.Fault{Kind: scwapi.RebootIgnored, Server: l.server.ID, Times: 1})
	code, _ := l.reboot("rescue")
	assert.Equal(t, http.StatusOK, code)
	l.pass(2 * time.Second)
	now := l.get()
	assert.Equal(t, "ready", now["status"])
	assert.Equal(t, "rescue", now["boot_type"])
	assert.Empty(t, l.told())
	assert.Equal(t, 1, l.server.Counters().Ignored)
	assert.Equal(t, 1, l.server.Counters().Reboots["rescue"], "it was accepted")
}

func TestStaleStatus(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.fault(scwapi.Fault{Kind: scwapi.StaleStatus, Delay: time.Second})
	l.reboot("rescue")
	stale := l.get()
	assert.Equal(t, "ready", stale["status"])
	assert.Equal(t, "normal", stale["boot_type"])
	l.pass(time.Second)
	assert.Equal(t, "stopping", l.get()["status"])
}

func TestStuckStopping(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.fault(scwapi.Fault{Kind: scwapi.StuckStopping, Times: 1})
	l.reboot("rescue")
	l.pass(time.Hour)
	assert.Equal(t, "stopping", l.get()["status"])
	assert.Equal(t, []string{"on rescue"}, l.told(), "the machine acts all the same")
	code, _ := l.call("DELETE", "/lab/faults", nil)
	assert.Equal(t, http.StatusNoContent, code)
	assert.Equal(t, "ready", l.get()["status"])
}

func TestRateIsSeeded(t *testing.T) {
	t.Parallel()
	limited := func(seed uint64) (n int) {
		l := newLab(t, func(o *scwapi.Options, _ *scwapi.ServerSpec) {
			o.Seed = seed
			o.Faults = []scwapi.Fault{{Kind: scwapi.RateLimit, Rate: 0.3}}
		})
		for range 100 {
			if code, _ := l.call("GET", l.path(""), nil); code == http.StatusTooManyRequests {
				n++
			}
		}
		return n
	}
	first := limited(1)
	assert.Equal(t, first, limited(1))
	assert.InDelta(t, 30, first, 20)
}

func TestFaultsOverHTTP(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	code, _ := l.call("POST", "/lab/faults", map[string]any{"kind": "rate-limit", "times": 1, "retry_after": "3s", "operation": "GetServer"})
	require.Equal(t, http.StatusOK, code)
	_, listed := l.call("GET", "/lab/faults", nil)
	assert.Equal(t, []any{map[string]any{"kind": "rate-limit", "times": 1.0, "retry_after": "3s", "operation": "GetServer"}}, listed["faults"])
	code, answer := l.call("GET", l.path(""), nil)
	assert.Equal(t, http.StatusTooManyRequests, code)
	assert.Equal(t, "3", answer["Retry-After"])
	for _, bad := range []map[string]any{
		{"kind": "earthquake"}, {"kind": "slow"}, {"kind": "reset", "rate": 2}, {"kind": "reset", "times": -1},
		{"kind": "reset", "operation": "reboot"}, {"kind": "server-error", "status": 200}, {"kind": "slow", "delay": "soon"},
	} {
		code, answer := l.call("POST", "/lab/faults", bad)
		assert.Equal(t, http.StatusBadRequest, code, bad)
		assert.Equal(t, "invalid_arguments", answer["type"], bad)
	}
	_, listed = l.call("GET", "/lab/faults", nil)
	assert.Empty(t, listed["faults"], "used up, and nothing refused is in force")
	l.reboot("rescue")
	_, counted := l.call("GET", "/lab/servers", nil)
	encoded, err := json.Marshal(counted["servers"])
	require.NoError(t, err)
	assert.Contains(t, string(encoded), `"reboots":{"rescue":1}`)
}
