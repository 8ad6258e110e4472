package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/cli"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/fault"
)

// refused runs a command that must fail, and gives what it tells the worker.
func refused(t *testing.T, h *hosttest.Host, stdin string, args ...string) error {
	t.Helper()
	var out, errs bytes.Buffer
	require.Equal(t, 1, cli.Run(t.Context(), h, "v0-test", args, strings.NewReader(stdin), &out, &errs))
	require.Empty(t, errs.String())
	var answer api.Answer[json.RawMessage]
	require.NoError(t, json.Unmarshal(out.Bytes(), &answer), "%s", out.String())
	require.NotNil(t, answer.Error)
	return answer.Error.Err()
}

// TestRefusals: what is wrong with a call, and what to do about it. Nothing
// that was read from standard input is quoted.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const disk, request = "SERIAL-1", api.StdinMarker + "\n"
	job := func(verb string, rest ...string) []string {
		return append([]string{"job", verb, "--key", "k", "--boot-id", "2c2a1f5e-0000-4000-8000-000000000001"}, rest...)
	}
	for want, c := range map[string]struct {
		stdin string
		args  []string
	}{
		"there is no request on standard input; write the line " + api.StdinMarker + " and a JSON request behind it to standard input": {
			"hunter2", job("start", "stage")},
		`the request's field "kind" has the wrong type; use a worker and an agent of one version`: {
			request + `{"kind":2}`, job("start", "stage")},
		"the request on standard input is not the JSON that this agent expects; use a worker and an agent of one version": {
			request + `{"hunter2":1}`, job("start", "stage")},
		`the request is for a job of kind "write", not "stage"; ask for the kind that the request is of`: {
			request + `{"kind":"write"}`, job("start", "stage")},
		`the claim is for the run "r", not "k"; claim it for the run that the key names`: {
			request + `{"fence":{"run":"r","pass":1}}`, job("claim")},
		`--verify is "some"; use full or data`: {
			"", []string{"write", "-o", "json", "--system", disk, "--verify", "some"}},
		"nothing was done: it would erase disks; read the plan (--dry-run) and say --yes if that is what you want": {
			"", []string{"disk-prep", "-o", "json", "--system", disk}},
	} {
		h := hosttest.New(t, hosttest.NewDisk(t, "sda", disk, 64<<20))
		h.Disks[0].Put(t, []byte("something old"), 1<<20)
		err := refused(t, h, c.stdin, c.args...)
		require.EqualError(t, err, want)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
		require.Empty(t, h.Disks[0].Ops())
	}
}

// TestMachinesThatTellNothing: the kernel's own refusals pass by themselves.
func TestMachinesThatTellNothing(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t)
	h.Blind = syscall.EIO
	h.Free = func() (uint64, error) { return 0, syscall.EIO }
	for want, args := range map[string][]string{
		"the system's facts cannot be read: input/output error": {"inspect"},
		"the list of disks cannot be read: input/output error":  {"write", "-o", "json", "--system", "SERIAL-1"},
		"the free RAM cannot be read: input/output error":       {"stage", "-o", "json", "--url", "http://images.example/raw", "--dry-run"},
	} {
		err := refused(t, h, "", args...)
		require.EqualError(t, err, want)
		require.Equal(t, fault.Transient, fault.ClassOf(err))
	}
}

func TestUnknownOutput(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.Equal(t, 1, cli.Run(t.Context(), hosttest.New(t), "v0-test", []string{"inspect", "-o", "xml"}, strings.NewReader(""), &out, &errs))
	require.Equal(t, "agent: \"xml\" is no output format; use text or json\n", errs.String())
	require.Empty(t, out.String())
}
