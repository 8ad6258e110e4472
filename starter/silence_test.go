package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// looks is a lot that is looked at: each look takes the next answer.
type looks []func() (track.Lot, error)

func (s *looks) Look(context.Context) (track.Lot, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	return next()
}

func sees(state run.State) func() (track.Lot, error) {
	return func() (track.Lot, error) {
		return track.Lot{Name: "rack-1", Nodes: []track.Node{{Node: run.Node{Name: "a"}, State: state}}}, nil
	}
}

func hears(err error) func() (track.Lot, error) {
	return func() (track.Lot, error) { return track.Lot{}, err }
}

// away is a Temporal that is away for two looks.
func away() *looks {
	refused := hears(fmt.Errorf("lot rack-1 cannot be looked at: %w", serviceerror.NewUnavailable("connection refused")))
	return &looks{sees(run.Running), refused, refused, sees(run.Ready)}
}

// TestSilenceIsTold: lines tell once that Temporal has gone, and once that it
// is back.
func TestSilenceIsTold(t *testing.T) {
	t.Parallel()
	out := &testenv.Log{}
	silence := show.Silence{Lot: "rack-1", Address: "temporal.example:7233"}
	_, err := watch(t.Context(), away(), &show.Plain{Out: out}, silence, whole)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4, out)
	require.Regexp(t, `^\S+Z  a +running`, lines[0])
	require.Regexp(t, `^\S+Z  Temporal at temporal\.example:7233 has not answered for \d+ s; shown is the state of \d\d:\d\d:\d\d UTC: .*connection refused$`, lines[1])
	require.Regexp(t, `^\S+Z  Temporal answers again: lot rack-1 is followed on$`, lines[2])
	require.Regexp(t, `^\S+Z  a +ready`, lines[3])
}

// TestSilenceIsAnEvent: programs learn the same.
func TestSilenceIsAnEvent(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var events []show.Event
	watcher := &show.Events{Encode: func(v any) error {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		var e show.Event
		require.NoError(t, json.Unmarshal(data, &e))
		events = append(events, e)
		return nil
	}}
	_, err := watch(t.Context(), away(), watcher, show.Silence{Lot: "rack-1"}, whole)
	require.NoError(t, err)
	require.Len(t, events, 4)
	require.Equal(t, []string{"node", "temporal", "temporal", "node"}, []string{events[0].Event, events[1].Event, events[2].Event, events[3].Event})
	require.Contains(t, events[1].Reason, "connection refused")
	require.WithinRange(t, events[1].Since, began, events[1].Time)
	require.Empty(t, events[2].Reason)
	require.Zero(t, events[2].Since)
	require.Equal(t, "rack-1", events[2].Lot)
}

// TestNoSuchLotIsNoSilence: Temporal has answered.
func TestNoSuchLotIsNoSilence(t *testing.T) {
	t.Parallel()
	out := &testenv.Log{}
	_, err := watch(t.Context(), &looks{hears(&track.NotFoundError{Lot: "rack-9"})}, &show.Plain{Out: out}, show.Silence{}, whole)
	require.ErrorContains(t, err, `there is no lot "rack-9"`)
	require.Empty(t, out.String())
}

// TestAnErrorIsNoSilence: who answers with an error is there.
func TestAnErrorIsNoSilence(t *testing.T) {
	t.Parallel()
	s := show.Silence{Address: "here:1", Since: time.Now(), Seen: true, Err: serviceerror.NewPermissionDenied("no", "")}
	require.Contains(t, s.Text(s.Since.Add(3*time.Second)), "the lot cannot be looked at for 3 s; shown is")
	s.Err = fmt.Errorf("lot: %w", context.DeadlineExceeded)
	require.Contains(t, s.Text(s.Since.Add(3*time.Second)), "Temporal at here:1 has not answered for 3 s; shown is")
	require.Empty(t, s.More(), "it says no more than the text")
	require.NotEmpty(t, s.Why(), "programs read this alone")
	out := &testenv.Log{}
	require.NoError(t, (&show.Plain{Out: out}).Silent(s, s.Since.Add(3*time.Second)))
	require.Regexp(t, `UTC\n$`, out.String())
}
