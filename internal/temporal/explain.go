package temporal

import (
	"errors"

	"go.temporal.io/api/serviceerror"

	"github.com/ironlot/ironlot/internal/fault"
)

// Explain says in words for people what an error means that came over the
// connection: a namespace that is not there, or a server that has ceased to
// answer. Other errors stay as they are. What it gives still is the error that
// it was, for errors.As. A nil connection explains nothing.
func (c *Connection) Explain(err error) error {
	var missing *serviceerror.NamespaceNotFound
	if c == nil {
		return err
	}
	if errors.As(err, &missing) {
		return c.noNamespace(err)
	}
	if _, classified := fault.As(err); !classified && Unanswered(err) {
		e := fault.New(fault.Transient, "start it again with `starter up` if it is this machine's, and see with `starter status` what has come of it",
			"Temporal at %s has ceased to answer (%s)", c.Address, Plain(err))
		e.Cause = err
		return e
	}
	return err
}

// noNamespace has the original error as its cause alone: its text says less.
func (c *Connection) noNamespace(err error) error {
	e := fault.Operator("name one that is there with --namespace, TEMPORAL_NAMESPACE or the profile",
		"Temporal at %s has no namespace %q", c.Address, c.Namespace)
	e.Cause = err
	return e
}

// Unanswered reports whether nobody answered, rather than answered with an
// error.
func Unanswered(err error) bool {
	var away *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	return errors.As(err, &away) || errors.As(err, &late)
}
