package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// The exit codes. They are part of the interface: scripts rely on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitRefused     = 2
	exitStuck       = 3
	exitAborted     = 4
	exitUnreachable = 5
	exitInterrupted = 130
)

// exitCodes is the table that the help shows.
func exitCodes() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range []struct {
		code    int
		meaning string
	}{
		{exitOK, "done; of a lot that was followed: all nodes are Ready"},
		{exitFailed, "an unexpected error"},
		{exitRefused, "refused: the input, a setting or the request makes no sense; nothing was touched"},
		{exitStuck, "some nodes are stuck and wait for retry or abort, or the lot waits for resume"},
		{exitAborted, "no node is stuck, but some were aborted or refused"},
		{exitUnreachable, "Temporal does not answer"},
		{exitInterrupted, "interrupted (Ctrl-C); the runs go on"},
	} {
		fmt.Fprintf(&b, "  %3d  %s\n", c.code, c.meaning)
	}
	return b.String()
}

// exitError is an error that knows its exit code. Without an error of its
// own everything has been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// refuse is an error about what the person asked for.
func refuse(remedy, format string, args ...any) error {
	return fault.Operator(remedy, format, args...)
}

// exitCode gives the exit code of an error.
func exitCode(err error) int {
	var known *exitError
	var problems lot.Problems
	var noLot *track.NotFoundError
	classified, isClassified := fault.As(err)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &known):
		return known.code
	case errors.As(err, &problems), errors.As(err, &noLot):
		return exitRefused
	case isClassified && classified.Class == fault.NeedsOperator:
		return exitRefused
	case temporal.Unanswered(err):
		return exitUnreachable
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		return exitFailed
	}
}

// outcome is how a lot's nodes stand, as an exit code. A node that still
// works is no failure; one that is queued, in a lot that goes no further by
// itself, waits for a person.
func outcome(l track.Lot) error {
	code, resume := exitOK, l.Held != "" && l.Settled()
	for _, n := range l.Nodes {
		switch n.State {
		case run.Stuck:
			return &exitError{code: exitStuck}
		case run.Aborted, run.Refused:
			code = exitAborted
		case run.Queued:
			if resume {
				return &exitError{code: exitStuck}
			}
		case run.Running, run.Ready: // no failure
		}
	}
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}
