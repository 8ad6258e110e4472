// Package fault is the closed set of error classes. Every error that leaves
// an activity has one of them; the class alone decides what happens next.
package fault

import (
	"errors"
	"fmt"
)

// Class is what may be done about an error.
type Class string

// The classes.
const (
	// Transient is retried in place with backoff.
	Transient Class = "Transient"
	// RescueLost means that this rescue boot is gone: the run rewinds.
	RescueLost Class = "RescueLost"
	// NeedsOperator cannot pass by itself: the run is stuck at once.
	NeedsOperator Class = "NeedsOperator"
	// Aborted is a person's wish.
	Aborted Class = "Aborted"
)

// Error is a classified error. Message is one sentence that says what failed
// and where; Remedy says what a person can do. Neither holds a secret.
type Error struct {
	Class   Class
	Message string
	Remedy  string
	Tail    string // end of the remote output, may be empty
	Cause   error  // may be nil; Message says what it means, mostly in its own text
}

// Error gives the message and the remedy.
func (e *Error) Error() string {
	s := e.Message
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// New makes a classified error; format may hold one %w.
func New(class Class, remedy, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: class, Message: err.Error(), Remedy: remedy, Cause: errors.Unwrap(err)}
}

// Retry is a Transient error.
func Retry(format string, args ...any) *Error { return New(Transient, "", format, args...) }

// Lost is a RescueLost error.
func Lost(format string, args ...any) *Error { return New(RescueLost, "", format, args...) }

// Operator is a NeedsOperator error with what the operator can do.
func Operator(remedy, format string, args ...any) *Error {
	return New(NeedsOperator, remedy, format, args...)
}

// WithTail adds the end of the remote output.
func (e *Error) WithTail(tail string) *Error {
	c := *e
	c.Tail = tail
	return &c
}

// As finds the classified error in a chain.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// ClassOf gives the class of an error; one without a class is Transient.
func ClassOf(err error) Class {
	if e, ok := As(err); ok {
		return e.Class
	}
	return Transient
}

// Known reports whether c is one of the classes.
func (c Class) Known() bool {
	switch c {
	case Transient, RescueLost, NeedsOperator, Aborted:
		return true
	}
	return false
}

// Each gives the errors that were joined into one, to be told one by one. An
// error with others in its own sentence stays as it is.
func Each(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the error itself, not what it wraps
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{err}
	}
	var all []error
	for _, err := range joined.Unwrap() {
		all = append(all, Each(err)...)
	}
	return all
}
