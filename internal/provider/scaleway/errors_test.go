package scaleway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/testenv"
)

// answer serves one answer to everything and counts the requests.
func answer(t *testing.T, code int, contentType, body string, headers map[string]string) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		for k, v := range headers {
			w.Header().Set(k, v)
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(served.Close)
	return served.URL, asked
}

func TestEveryAnswerHasItsClass(t *testing.T) {
	t.Parallel()
	const jsonType = "application/json"
	for name, tc := range map[string]struct {
		code  int
		body  string
		class fault.Class
		says  string
		maybe bool
	}{
		"invalid arguments": {400, `{"type":"invalid_arguments","details":[{"argument_name":"ssh_key_ids","reason":"format","help_message":"must be UUIDs"}]}`,
			fault.NeedsOperator, "ssh_key_ids is wrongly formatted, must be UUIDs", false},
		"quota":             {403, `{"type":"quotas_exceeded","details":[{"resource":"servers","quota":2,"current":2}]}`, fault.NeedsOperator, "servers has reached its quota (2/2)", false},
		"transient state":   {409, `{"type":"transient_state","resource":"server","resource_id":"1","current_state":"stopping"}`, fault.Transient, `server 1 is in the passing state "stopping"`, false},
		"not found":         {404, `{"type":"not_found","resource":"ssh_key","resource_id":"1"}`, fault.NeedsOperator, "knows no ssh key 1", false},
		"plain not found":   {404, `{"message":"Not Found"}`, fault.NeedsOperator, "404 Not Found", false},
		"locked":            {409, `{"type":"locked","resource":"server","resource_id":"1"}`, fault.Transient, "server 1 is locked", false},
		"permission":        {403, `{"type":"permissions_denied","details":[{"resource":"elastic_metal_server","action":"write"}]}`, fault.NeedsOperator, "write elastic_metal_server", false},
		"out of stock":      {400, `{"type":"out_of_stock","resource":"EM-A410X-SSD"}`, fault.NeedsOperator, "no EM-A410X-SSD left", false},
		"expired":           {410, `{"type":"resource_expired","resource":"server","resource_id":"1","expired_since":"2026-01-01T00:00:00Z"}`, fault.NeedsOperator, "server 1 has expired", false},
		"denied":            {401, `{"type":"denied_authentication","method":"api_key","reason":"expired"}`, fault.NeedsOperator, "API key is expired", false},
		"precondition":      {412, `{"type":"precondition_failed","precondition":"resource_still_in_use","help_message":"detach it"}`, fault.NeedsOperator, "resource is still in use, detach it", false},
		"unknown type":      {400, `{"type":"brand_new","message":"no"}`, fault.NeedsOperator, "400 Bad Request, no", false},
		"plain 401":         {401, `{}`, fault.NeedsOperator, "API key", false},
		"plain 403":         {403, `{}`, fault.NeedsOperator, "API key may not", false},
		"plain 409":         {409, `{"message":"busy"}`, fault.Transient, "409 Conflict, busy", false},
		"request timeout":   {408, `{}`, fault.Transient, "408", false},
		"server error":      {500, `{"message":"internal error"}`, fault.Transient, "500 Internal Server Error, internal error", true},
		"refused user data": {503, `{"message":"cloud-init is not supported on this offer"}`, fault.Transient, "503 Service Unavailable, cloud-init", true},
		"message in lines":  {422, "{\"message\":\"one\\ntwo\"}", fault.NeedsOperator, "one two", false},
		"half an error":     {500, `{"message":`, fault.Transient, "cannot be understood", true},
		"half an answer":    {200, `{"id":`, fault.Transient, "cannot be understood", true},
		"nothing much":      {200, `[]`, fault.Transient, "cannot be understood", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, asked := answer(t, tc.code, jsonType, tc.body, nil)
			err := newClient(t, url).Reboot(context.Background(), zone, nobody, provider.BootRescue, nil)
			e := refused(t, tc.class, err)
			assert.Contains(t, e.Message, tc.says)
			assert.Contains(t, e.Message, "reboot server "+nobody+" in zone "+zone+" into rescue")
			assert.Equal(t, tc.maybe, provider.MaybeDone(err))
			assert.LessOrEqual(t, asked.Load(), int32(2), "one request, and one look at the server after a plain 400")
		})
	}
}

func TestGatewayPages(t *testing.T) {
	t.Parallel()
	for code, class := range map[int]fault.Class{502: fault.Transient, 504: fault.Transient, 403: fault.NeedsOperator, 200: fault.Transient} {
		url, _ := answer(t, code, "text/html", "<html>"+http.StatusText(code)+"</html>", nil)
		_, err := newClient(t, url).Describe(context.Background(), zone, nobody)
		e := refused(t, class, err)
		assert.NotContains(t, e.Message, "<html>")
	}
}

func TestRedirectionIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere, asked := answer(t, 200, "application/json", `{}`, nil)
	url, _ := answer(t, 307, "text/html", "", map[string]string{"Location": elsewhere})
	refused(t, fault.NeedsOperator, newClient(t, url).Reboot(context.Background(), zone, nobody, provider.BootRescue, nil))
	assert.Zero(t, asked.Load(), "the token goes to no other host")
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat)
	for name, tc := range map[string]struct {
		code     int
		header   string
		low, top time.Duration
	}{
		"seconds":      {429, "7", 7 * time.Second, 7 * time.Second},
		"date":         {429, soon, 9 * time.Minute, 10 * time.Minute},
		"503":          {503, "3", 3 * time.Second, 3 * time.Second},
		"none":         {429, "", 0, 0},
		"nonsense":     {429, "later", 0, 0},
		"negative":     {429, "-5", 0, 0},
		"past":         {429, "Wed, 21 Oct 2015 07:28:00 GMT", 0, 0},
		"far too long": {429, "4000000000", time.Hour, time.Hour},
	} {
		headers := map[string]string{}
		if tc.header != "" {
			headers["Retry-After"] = tc.header
		}
		url, asked := answer(t, tc.code, "application/json", `{"message":"slow down"}`, headers)
		err := newClient(t, url).Reboot(context.Background(), zone, nobody, provider.BootRescue, nil)
		refused(t, fault.Transient, err)
		assert.GreaterOrEqual(t, provider.RetryAfter(err), tc.low, name)
		assert.LessOrEqual(t, provider.RetryAfter(err), tc.top, name)
		assert.False(t, provider.MaybeDone(err), name)
		assert.Equal(t, int32(1), asked.Load(), name)
		var throttled *provider.Throttled
		assert.ErrorAs(t, err, &throttled, name)
	}
}

func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l := newLab(t, scwapi.ServerSpec{})
	require.NoError(t, l.api.AddFault(scwapi.Fault{Kind: scwapi.Reset, Operation: "RebootServer", Times: 1}))
	err := l.Reboot(ctx, zone, l.server.ID, provider.BootRescue, nil)
	refused(t, fault.Transient, err)
	assert.True(t, provider.MaybeDone(err), "nobody can tell")
	assert.Empty(t, l.told())

	require.NoError(t, l.api.AddFault(scwapi.Fault{Kind: scwapi.LostAnswer, Operation: "RebootServer", Times: 1}))
	err = l.Reboot(ctx, zone, l.server.ID, provider.BootRescue, nil)
	refused(t, fault.Transient, err)
	assert.True(t, provider.MaybeDone(err))
	assert.Equal(t, []string{"on rescue"}, l.told())
	assert.Equal(t, 1, l.server.Counters().Reboots["rescue"], "the HTTP client does not send it again")
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	err := newClient(t, "http://"+testenv.Nobody()).Reboot(context.Background(), zone, nobody, provider.BootRescue, nil)
	refused(t, fault.Transient, err)
	assert.False(t, provider.MaybeDone(err), "it was never sent")
}

func TestUntrustedCertificate(t *testing.T) {
	t.Parallel()
	served := httptest.NewUnstartedServer(http.NotFoundHandler())
	served.Config.ErrorLog = discard()
	served.StartTLS()
	t.Cleanup(served.Close)
	err := newClient(t, served.URL).Reboot(context.Background(), zone, nobody, provider.BootRescue, nil)
	refused(t, fault.NeedsOperator, err)
	assert.False(t, provider.MaybeDone(err))
}

func TestCanceledAndLate(t *testing.T) {
	t.Parallel()
	asked, released := make(chan struct{}, 2), make(chan struct{})
	served := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-released
	}))
	t.Cleanup(served.Close)
	t.Cleanup(func() { close(released) })
	c := newClient(t, served.URL)

	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	err := c.Reboot(ctx, zone, nobody, provider.BootRescue, nil)
	refused(t, fault.Transient, err)
	assert.ErrorIs(t, err, context.Canceled)
	assert.True(t, provider.MaybeDone(err))

	late, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	_, err = c.Describe(late, zone, nobody)
	refused(t, fault.Transient, err)
	assert.ErrorIs(t, err, context.DeadlineExceeded)

	before, gone := context.WithCancel(context.Background())
	gone()
	err = c.Reboot(before, zone, nobody, provider.BootRescue, nil)
	refused(t, fault.Transient, err)
	assert.False(t, provider.MaybeDone(err), "it was never sent")
}

// An API, or something before it, that echoes the token must not get it into
// errors, nor into what they wrap.
func TestSecretKeyNeverInErrors(t *testing.T) {
	t.Parallel()
	secret := scwapi.DefaultKey().SecretKey
	for i, body := range []string{
		`{"message":"no such key ` + secret + `"}`,
		`{"type":"invalid_arguments","details":[{"argument_name":"token","help_message":"` + secret + `"}]}`,
		`{"type":"not_found","resource":"key","resource_id":"` + secret + `"}`,
		`{"type":"transient_state","resource":"key","resource_id":"` + secret + `","current_state":"x"}`,
	} {
		for _, code := range []int{400, 404, 500} {
			url, _ := answer(t, code, "application/json", body, nil)
			_, err := newClient(t, url).Describe(context.Background(), zone, nobody)
			for ; err != nil; err = unwrap(err) {
				assert.NotContains(t, err.Error(), secret, "%d %d", i, code)
				assert.NotContains(t, fmt.Sprintf("%+v", err), secret, "%d %d", i, code)
			}
		}
	}
}

func unwrap(err error) error {
	if w, ok := err.(interface{ Unwrap() error }); ok {
		return w.Unwrap()
	}
	return nil
}

func TestUserAgentAndToken(t *testing.T) {
	t.Parallel()
	headers := make(chan http.Header, 1)
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Clone()
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(served.Close)
	_, err := newClient(t, served.URL).Describe(context.Background(), zone, nobody)
	require.Error(t, err)
	seen := <-headers
	assert.True(t, strings.HasPrefix(seen.Get("User-Agent"), "scaleway-sdk-go/"))
	assert.True(t, strings.HasSuffix(seen.Get("User-Agent"), " ironlot/1.2.3"))
	assert.Equal(t, scwapi.DefaultKey().SecretKey, seen.Get("X-Auth-Token"))
}
