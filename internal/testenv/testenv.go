// Package testenv says what a test does that lacks something on this machine.
package testenv

import (
	"os"
	"testing"
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
