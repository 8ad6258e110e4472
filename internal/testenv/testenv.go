// Package testenv has what tests of several packages need: ports, logs, waits
// that end, and what a test does that lacks something on this machine.
package testenv

import (
	"context"
	"os"
	"testing"
	"time"
)

// Lacks skips a test for want of something, loudly; in CI (CI is set) that
// is a failure, for there everything is installed.
func Lacks(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("this cannot be tested here, which is an error in CI: %s", what)
	}
	t.Skipf("SKIPPED, and an error in CI: %s", what)
}

// Soon is a context for what a test waits for and what takes seconds at most:
// after a minute the wait ends with its own error, not with the test binary.
func Soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
