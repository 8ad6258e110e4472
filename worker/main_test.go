package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/internal/testenv"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	require.Equal(t, exitFailed, exitCode(errors.New("anything")))
	require.Equal(t, exitRefused, exitCode(fault.Operator("mend it", "wrong")))
	require.Equal(t, exitUnreachable, exitCode(fmt.Errorf("worker: %w", unreachableError{errors.New("nobody")})))
}

// TestCommandLineMistakes are settings to mend, with where to read.
func TestCommandLineMistakes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--adress=here:1": "`worker` has no flag --adress; did you mean --address; `worker --help` shows how it is used",
		"here:1":          "`worker` takes no arguments, and \"here:1\" is one; `worker --help` shows how it is used",
	} {
		cmd := command()
		cmd.SetArgs([]string{args})
		err := cmd.Execute()
		require.EqualError(t, err, want)
		require.Equal(t, exitRefused, exitCode(err))
	}
}

// TestVersion answers as the starter's does.
func TestVersion(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"json": `^\{"program":"worker","version":".+","go":"go1.+","os":".+","arch":".+"\}\n$`,
		"text": `^ironlot worker .+ \(go1.+/.+\)\n$`,
	} {
		var out bytes.Buffer
		cmd := command()
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"version", "-o", output})
		require.NoError(t, cmd.Execute())
		require.Regexp(t, want, out.String())
	}
}

// TestTemporalThatDoesNotAnswer: the class of the error decides about the
// exit code.
func TestTemporalThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	_, err := temporal.Dial(t.Context(), temporal.Options{Address: testenv.Nobody()})
	require.Equal(t, exitUnreachable, exitCode(dialled(err)))
	require.NoError(t, dialled(nil))
}
