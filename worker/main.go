// Command worker runs Ironlot's workflows and activities: it polls Temporal
// and works on the provider, on machines and on nodes.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/interrupt"
	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/internal/worker"
)

func main() {
	worker.SaveMemory()
	ctx, stop := interrupt.Context()
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		for _, err := range fault.Each(err) {
			fmt.Fprintln(os.Stderr, "worker:", err)
		}
		os.Exit(exitCode(err))
	}
}

// Exit codes of the worker.
const (
	exitFailed      = 1
	exitRefused     = 2 // a setting that must be mended
	exitUnreachable = 5 // Temporal does not answer, as with starter
)

// unreachableError says that Temporal does not answer.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

// dialled says of an error of Dial whether it was that nobody answered.
func dialled(err error) error {
	if err != nil && fault.ClassOf(err) == fault.Transient {
		return unreachableError{err}
	}
	return err
}

func exitCode(err error) int {
	var f *fault.Error
	var unreachable unreachableError
	if errors.As(err, &unreachable) {
		return exitUnreachable
	}
	if errors.As(err, &f) && f.Class == fault.NeedsOperator {
		return exitRefused
	}
	if temporal.Unanswered(err) {
		return exitUnreachable
	}
	return exitFailed
}
