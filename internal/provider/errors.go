package provider

import (
	"errors"
	"fmt"
	"time"
)

// Throttled is in the chain of an error by which the provider asks its
// callers to slow down (HTTP 429, or 503 with Retry-After).
type Throttled struct {
	After time.Duration // how long to wait, 0 when the provider does not say
}

// Error says how long to wait.
func (t *Throttled) Error() string {
	if t.After == 0 {
		return "the provider asks to slow down"
	}
	return fmt.Sprintf("the provider asks to wait %s", t.After)
}

// Unanswered is in the chain of an error of a request that may have been
// carried out all the same: it was sent, and no answer that settles it came
// back (the connection broke, time ran out, a 5xx). An error without it
// means that nothing was done.
type Unanswered struct {
	Cause error
}

// Error gives the cause's text.
func (u *Unanswered) Error() string { return u.Cause.Error() }

// Unwrap gives the cause.
func (u *Unanswered) Unwrap() error { return u.Cause }

// RetryAfter is how long the provider asks to wait before the next request,
// 0 when it does not ask or does not say.
func RetryAfter(err error) time.Duration {
	if t, ok := errors.AsType[*Throttled](err); ok {
		return t.After
	}
	return 0
}

// MaybeDone reports whether a request that failed may have been carried out.
func MaybeDone(err error) bool {
	_, ok := errors.AsType[*Unanswered](err)
	return ok
}
