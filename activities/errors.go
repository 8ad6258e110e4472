package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
)

// errWorkerStops is the cause of a context that ends because the worker is
// being stopped: the phase goes on with another worker.
var errWorkerStops = errors.New("the worker is stopping")

// Temporal keeps 4 KB of a pending activity's failure; a message and a tail
// of these sizes (bytes) stay whole.
const (
	maxMessage = 1500
	maxTail    = 1800
)

// report gives an error the form in which Temporal carries it: type, remedy
// and the remote output's tail, without the chain of causes, whose texts are
// in the message already.
func report(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errWorkerStops):
		err = fault.Retry("%w; another worker goes on", errWorkerStops)
	case ctx.Err() != nil:
		return ctx.Err() // Temporal asked for it, or the attempt has timed out
	}
	f := classified(err)
	return temporal.NewApplicationErrorWithOptions(clip.End(f.Message, maxMessage), string(f.Class), temporal.ApplicationErrorOptions{
		NonRetryable:   f.Class != fault.Transient,
		Details:        []any{run.ErrorDetails{Remedy: clip.End(f.Remedy, maxMessage), Tail: clip.Start(f.Tail, maxTail)}},
		NextRetryDelay: retryDelay(err),
	})
}

// classified is an error with its class; one without passes by itself.
func classified(err error) *fault.Error {
	if f, ok := fault.As(err); ok {
		return f
	}
	return &fault.Error{Class: fault.Transient, Message: err.Error()}
}

// retryDelay is how long the provider asks to wait, at most five minutes.
func retryDelay(err error) time.Duration {
	return min(provider.RetryAfter(err), 5*time.Minute)
}
