package rescue

import (
	"errors"
	"fmt"

	"github.com/ironlot/ironlot/internal/fault"
)

// What a caller may need to tell apart; found with errors.Is in the errors of
// this package.
var (
	// ErrNotAnswering: nobody speaks SSH at the address (refused, silent, cut
	// off before the login). Normal while a machine boots. Transient.
	ErrNotAnswering = errors.New("SSH is not answering")
	// ErrAuth: SSH answers and refuses our keys: another system than rescue,
	// or a key that the provider does not know. NeedsOperator; while waiting
	// for a boot it means that the old system answers.
	ErrAuth = errors.New("SSH login refused")
	// ErrHostKey: another host key than the pinned one, so another boot or
	// another machine. RescueLost.
	ErrHostKey = errors.New("SSH host key changed")
	// ErrTransport: the connection broke while a command ran; what the
	// command did is unknown. Transient.
	ErrTransport = errors.New("SSH connection lost")
	// ErrSudo: sudo did not let us become root. NeedsOperator.
	ErrSudo = errors.New("sudo refused")
)

// CommandError is a command that ran and failed, as opposed to a transport
// that failed.
type CommandError struct {
	Command string // the words that were run; never holds a secret
	Exit    int    // exit status, -1 when a signal ended it
	Signal  string // signal name without SIG, when a signal ended it
	Tail    string // end of standard error
}

// Error says which command failed and how.
func (e *CommandError) Error() string {
	if e.Signal != "" {
		return fmt.Sprintf("%s was ended by signal %s", e.Command, e.Signal)
	}
	return fmt.Sprintf("%s failed with exit status %d", e.Command, e.Exit)
}

// failure is a classified error that wraps one of the sentinels and what led
// to it.
func failure(class fault.Class, kind, cause error, remedy, format string, args ...any) *fault.Error {
	return &fault.Error{
		Class:   class,
		Message: fmt.Sprintf(format, args...),
		Remedy:  remedy,
		Cause:   errors.Join(kind, cause),
	}
}

func notAnswering(addr string, cause error) error {
	return failure(fault.Transient, ErrNotAnswering, cause, "", "SSH at %s is not answering: %v", addr, cause)
}

func transport(addr, doing string, cause error) error {
	return failure(fault.Transient, ErrTransport, cause, "", "the SSH connection to %s broke during %s: %v", addr, doing, cause)
}
