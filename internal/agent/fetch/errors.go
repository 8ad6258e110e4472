package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
)

// Why a redirect is not followed.
var (
	errDowngrade = errors.New("the server redirects from https to http")
	errScheme    = errors.New("the server redirects to something else than http or https")
	errRedirects = errors.New("the server redirects more than 10 times")
)

// withRedirects gives a client that follows redirects with care.
func withRedirects(client *http.Client) *http.Client {
	c := *client
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 10:
			return errRedirects
		case req.URL.Scheme != "http" && req.URL.Scheme != "https":
			return errScheme
		case req.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
			return errDowngrade
		}
		return nil
	}
	return &c
}

// statusError is an answer that brings no file.
type statusError struct {
	code       int
	retryAfter time.Duration
}

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code)))
}

func newStatusError(resp *http.Response) error {
	e := &statusError{code: resp.StatusCode}
	after := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds > 0 {
		e.retryAfter = time.Duration(min(seconds, 60)) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		e.retryAfter = min(time.Until(at), time.Minute)
	}
	return e
}

// retryable reports whether a new connection may help.
func retryable(err error) bool {
	var s *statusError
	if errors.As(err, &s) {
		switch s.code {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
			return true
		}
		return s.code >= 500
	}
	return !errors.Is(err, ErrChanged) && !errors.Is(err, errDowngrade) && !errors.Is(err, errScheme) &&
		!errors.Is(err, errRedirects) && !isCertificate(err)
}

func isCertificate(err error) bool {
	var verify *tls.CertificateVerificationError
	return errors.As(err, &verify)
}

// refusal is the error for what no new connection helps against.
func (b *Body) refusal(err error) error {
	where := redact(b.url)
	var s *statusError
	switch {
	case errors.Is(err, ErrChanged):
		return fault.Retry("%s: %w", where, ErrChanged)
	case isCertificate(err):
		return fault.Operator(b.trustRemedy(err), "the certificate of %s is not trusted: %s", b.url.Host, scrub(err))
	case errors.As(err, &s):
		return fault.Operator("check the image URL", "%s cannot be downloaded: %w", where, s)
	}
	return fault.Operator("check the image URL", "%s cannot be downloaded: %s", where, scrub(err))
}

// trustRemedy says what to do about a certificate. Rescue systems come
// without CA certificates, or with a clock that is years off.
func (b *Body) trustRemedy(err error) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return fmt.Sprintf("the rescue system's clock says %s: if that is wrong, serve the image over http and give its sha256", time.Now().UTC().Format(time.RFC3339))
	}
	pool, poolErr := x509.SystemCertPool()
	if poolErr != nil || pool.Equal(x509.NewCertPool()) {
		return "the rescue system has no CA certificates: serve the image over http and give its sha256"
	}
	return "use an image server with a public certificate, or serve the image over http and give its sha256"
}

// Parse reads the URL of a file: absolute, http or https, with a host.
func Parse(raw string) (*url.URL, error) {
	const remedy = "give an absolute URL such as https://factory.talos.dev/image/…/metal-amd64.raw.zst"
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		// Its text holds the URL, and the URL may hold a password.
		return nil, fault.Operator(remedy, "the image URL cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fault.Operator(remedy, "the image URL starts with %q, and only http and https are known", u.Scheme)
	case u.Hostname() == "":
		return nil, fault.Operator(remedy, "the image URL names no host")
	}
	return u, nil
}

// Redact gives a URL without what may be secret in it: user, password, query
// and fragment.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable URL)"
	}
	return redact(u)
}

func redact(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.RawQuery != "" {
		return shown.String() + "?…"
	}
	return shown.String()
}

// scrub gives an error's text without URLs, queries and the like: errors of
// net/http quote what the server sent.
func scrub(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return regexp.MustCompile(`\S*(://|[?=@%])\S*`).ReplaceAllString(err.Error(), "…")
}
