package show

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/ironlot/ironlot/internal/temporal"
)

// Silence is that a lot which is followed cannot be looked at for the moment.
type Silence struct {
	Lot     string
	Address string    // of Temporal
	Since   time.Time // of the last answer, or of the first question
	Seen    bool      // something is shown, which is as of then
	Err     error     // what failed
}

// Text says since when nothing is known, and how old that makes what is shown.
func (s Silence) Text(now time.Time) string {
	silent := int(max(0, now.Sub(s.Since)).Seconds())
	text := fmt.Sprintf("Temporal at %s has not answered for %d s", Clean(s.Address), silent)
	if !s.unanswered() {
		text = fmt.Sprintf("the lot cannot be looked at for %d s", silent)
	}
	if s.Seen {
		return text + "; shown is the state of " + s.Since.UTC().Format(time.TimeOnly+" MST")
	}
	return text + "; nothing is known of the lot yet"
}

// Why is what failed.
func (s Silence) Why() string { return Clean(temporal.Plain(s.Err)) }

// More is what failed, beside the text: empty when it is only that nobody
// answered in time, which the text says already.
func (s Silence) More() string {
	if late := new(serviceerror.DeadlineExceeded); errors.Is(s.Err, context.DeadlineExceeded) || errors.As(s.Err, &late) {
		return ""
	}
	return s.Why()
}

// unanswered reports whether nobody answered, rather than answered with an
// error.
func (s Silence) unanswered() bool {
	return temporal.Unanswered(s.Err) || errors.Is(s.Err, context.DeadlineExceeded)
}
