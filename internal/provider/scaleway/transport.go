package scaleway

import (
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ironlot/ironlot/internal/provider"
)

// requestTimeout bounds one request, as in the SDK's own HTTP client.
const requestTimeout = 30 * time.Second

// maxRetryAfter caps what an answer may ask to wait.
const maxRetryAfter = time.Hour

// doer sends the SDK's requests. It is not a *http.Client on purpose: the
// SDK would make such a client log whole answers, rescue passwords included,
// when SCW_DEBUG is set.
type doer struct {
	http *http.Client
}

// newDoer makes a doer; insecure turns off the check of the API's certificate.
func newDoer(timeout time.Duration, insecure bool) *doer {
	if timeout == 0 {
		timeout = requestTimeout
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	if insecure {
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // asked for with SCW_INSECURE
	}
	return &doer{http: &http.Client{
		Timeout:   timeout,
		Transport: transport,
		// net/http would send the X-Auth-Token along to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do sends a request. An error is a provider.Unanswered once the request's
// head was written, and a provider.Throttled when the answer asks to slow
// down, which the SDK has no type for.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	resp, err := d.http.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		if sent.Load() {
			return nil, &provider.Unanswered{Cause: err}
		}
		return nil, err
	}
	if asksToSlowDown(resp) {
		_ = resp.Body.Close()
		return nil, &provider.Throttled{After: retryAfter(resp.Header, time.Now())}
	}
	return resp, nil
}

// asksToSlowDown: 429 always does, 503 only when it says for how long.
func asksToSlowDown(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != ""
}

// retryAfter reads the header of RFC 9110, 10.2.3: seconds or a date. 0 means
// that it says nothing useful.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now), maxRetryAfter)
	}
	return 0
}
