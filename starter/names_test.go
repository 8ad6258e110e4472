package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/internal/testenv"
)

// TestNamesThatAreNone: what cannot be a lot's or a node's name is refused
// before anything is asked, and not shown as it is.
func TestNamesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "\x1b[31mred", "lüt", "two words", "\u202ekcar", "\xff", "line\nbreak", strings.Repeat("a", 5000)} {
		for _, args := range [][]string{
			{"status", name}, {"status", "lot", name}, {"ui", name}, {"retry", name}, {"abort", "lot", name}, {"postmortem", name},
			{"pause", name}, {"resume", name}, {"add", name}, {"inventory", name},
		} {
			c := newConsole(t, testenv.Nobody())
			require.Equal(t, exitRefused, c.starter(args...), args)
			require.Contains(t, c.err.String(), "is no name of a lot or a node")
			require.NotContains(t, c.err.String(), "\x1b")
			require.Less(t, len(c.err.String()), 500)
		}
	}
}

// TestErrorsAreShownWithoutCommands: whoever wrote the text of an error.
func TestErrorsAreShownWithoutCommands(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "")
	c.complain(errors.New("one\x1b]0;title\x07\ntwo\u202e"))
	require.Equal(t, "starter: one ]0;title \ntwo \n", c.err.String())
}

// TestErrorsFitTheTerminal: lines break between words on a terminal, and not
// where a program reads.
func TestErrorsFitTheTerminal(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "")
	c.errWidth = func() int { return 80 }
	require.Equal(t, exitRefused, c.starter("provision", "lot.yaml"))
	require.Greater(t, strings.Count(c.err.String(), "\n"), 1)
	for line := range strings.Lines(c.err.String()) {
		require.LessOrEqual(t, len(line), 81)
	}
	one := newConsole(t, "")
	require.Equal(t, exitRefused, one.starter("provision", "lot.yaml"))
	require.Equal(t, one.err.String(), strings.Join(strings.Fields(c.err.String()), " ")+"\n")
}

// TestNamespaceThatIsNotThere: a setting to mend, not a failure.
func TestNamespaceThatIsNotThere(t *testing.T) {
	t.Parallel()
	c := &temporal.Connection{Address: "here:7233", Namespace: "nope"}
	require.Equal(t, exitRefused, exitCode(c.Explain(fmt.Errorf("lot: %w", serviceerror.NewNamespaceNotFound("nope")))))
	require.Equal(t, exitUnreachable, exitCode(c.Explain(fmt.Errorf("lot: %w", serviceerror.NewUnavailable("gone")))))
	require.Equal(t, exitFailed, exitCode(serviceerror.NewNotFound("workflow")))
	require.Equal(t, exitInterrupted, exitCode(context.Canceled))
}
