package activities

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
)

// maxJobs bounds how many jobs one pass through a phase starts on a boot:
// each stands for one that failed in passing or whose process died.
const maxJobs = 5

// againAfter is how long to wait before the job after the n-th one: an image
// server that restarts gets a minute and a half in all.
func againAfter(n int) time.Duration { return time.Second << (2 * (n - 1)) }

// maxLog bounds the machine's log in a phase's result, bytes.
const maxLog = 4000

// jobEnd is what a job proved and what happened on the machine meanwhile.
type jobEnd struct {
	api.JobResult
	log string
}

// runJob brings a job to its end on the run's rescue boot: it attaches to
// the job when it is there already, and outlives cut connections. A job that
// failed in passing is started again under the next key; the agent's lock
// keeps the jobs of all keys apart.
func (a *Activities) runJob(ctx context.Context, b *beat, in run.PhaseInput, spec api.JobSpec) (jobEnd, error) {
	spec.Fence = &api.Fence{Run: in.Run, Pass: in.Pass}
	var tries strings.Builder // how the jobs before this one failed
	for n := 1; ; {
		status, err := a.attach(ctx, b, in, jobKey(in, n), spec)
		switch {
		case errors.Is(err, rescue.ErrTransport) && ctx.Err() == nil:
			if err := cutOff(ctx, b, in, bound(ctx), err); err != nil {
				return jobEnd{}, err
			}
			continue
		case err != nil:
			return jobEnd{}, err
		}
		err = outcome(in, status)
		if err == nil {
			return jobEnd{*status.Result, clip.Start(logTail(status), maxLog)}, nil
		}
		if fault.ClassOf(err) != fault.Transient {
			return jobEnd{}, err
		}
		if n == maxJobs {
			return jobEnd{}, gaveUp(err, tries.String())
		}
		b.tries(n + 1)
		fmt.Fprintf(&tries, "job %d of %d: %s\n", n, maxJobs, clip.End(messageOf(err), 300))
		b.step("starting the job again: " + clip.End(err.Error(), 200))
		if err := pause.For(ctx, againAfter(n)); err != nil {
			return jobEnd{}, err
		}
		n++
	}
}

// cutOff waits a moment after a connection broke under a job that goes on. One
// that breaks again and again is a person's matter once the phase's time is up.
func cutOff(ctx context.Context, b *beat, in run.PhaseInput, until time.Time, broken error) error {
	if time.Now().After(until) {
		return fault.Operator("check the network between the worker and the server, then retry: the job is attached to if it is still there",
			"the connection to server %s kept breaking until the phase's time was up: %w", in.Node.ServerName, broken)
	}
	b.step("connection lost, the job goes on: connecting again")
	return pause.For(ctx, machinePoll)
}

// messageOf is an error without what a person can do about it.
func messageOf(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return err.Error()
}

// gaveUp hands a job that always fails to a person, in its own words, with how
// the tries before it failed.
func gaveUp(err error, tries string) error {
	f, _ := fault.As(err)
	remedy := "mend the cause, then retry"
	switch {
	case strings.Contains(f.Remedy, "starter retry"):
		remedy = f.Remedy
	case f.Remedy != "":
		remedy = f.Remedy + "; then retry"
	}
	return fault.Operator(remedy, "the job failed %d times, the last time because %s", maxJobs, f.Message).WithTail(tries + f.Tail)
}

// jobKey is the key of the n-th job of a pass through a phase.
func jobKey(in run.PhaseInput, n int) string { return fmt.Sprintf("%s.%d", in.Key, n) }

// attach logs in, or goes on with the session of the phase before, and works a
// job off.
func (a *Activities) attach(ctx context.Context, b *beat, in run.PhaseInput, key string, spec api.JobSpec) (api.JobStatus, error) {
	s, err := a.connectPinned(ctx, b, in)
	if err != nil {
		return api.JobStatus{}, err
	}
	status, err := a.workOff(ctx, b, s, in, key, spec)
	if err == nil && status.State == api.JobSucceeded {
		a.dialer.Keep(s) // for the next phase
	} else {
		s.Close()
	}
	return status, err
}

// workOff starts the job, unless it is there already, and follows it to its end.
func (a *Activities) workOff(ctx context.Context, b *beat, s *rescue.Session, in run.PhaseInput, key string, spec api.JobSpec) (api.JobStatus, error) {
	bootID := in.Facts.Rescue.BootID
	began, err := s.StartJob(ctx, bootID, key, spec)
	if err != nil || began.State != api.JobRunning {
		return began, err
	}
	ctx, cancel := context.WithDeadlineCause(ctx, bound(ctx), errTooLong)
	defer cancel()
	last, err := s.FollowJob(ctx, bootID, key, func(st api.JobStatus) { b.set(progressOf(st)) })
	if err == nil || !errors.Is(context.Cause(ctx), errTooLong) {
		return last, err
	}
	if last.State == "" {
		last = began
	}
	return last, a.tooLong(b.ctx, s, in, key, last)
}

var errTooLong = errors.New("the job takes too long")

// tooLong stops a job that has used up its time.
func (a *Activities) tooLong(ctx context.Context, s *rescue.Session, in run.PhaseInput, key string, last api.JobStatus) error {
	remedy := "look at the log's end, raise the lot's timeout for this phase if the machine is just slow, then retry"
	at := "its start"
	if step := last.Progress.Step; step != "" {
		at = strconv.Quote(step)
	}
	err := fault.Operator(remedy, "%s on server %s was still at %s when its time was up", last.Kind, in.Node.ServerName, at)
	if _, cancelErr := s.CancelJob(ctx, in.Facts.Rescue.BootID, key); cancelErr != nil {
		err = fault.Operator(remedy, "%s on server %s was still at %s when its time was up, and could not be stopped: %w",
			last.Kind, in.Node.ServerName, at, cancelErr)
	}
	return err.WithTail(logTail(last))
}

// outcome is the error of a job that has ended, nil when it succeeded.
func outcome(in run.PhaseInput, st api.JobStatus) error {
	switch {
	case st.State == api.JobSucceeded && st.Result != nil:
		return nil
	case st.Error != nil:
		f, _ := fault.As(st.Error.Err())
		if f.Tail == "" {
			f = f.WithTail(logTail(st))
		}
		return f
	default:
		return fault.Retry("%s on server %s ended as %s without a result", st.Kind, in.Node.ServerName, st.State).WithTail(logTail(st))
	}
}

// logTail is the end of a job's log as text.
func logTail(st api.JobStatus) string {
	var b strings.Builder
	for _, e := range st.Log {
		fmt.Fprintf(&b, "%s %s %s", e.At.UTC().Format(time.TimeOnly), e.Event, e.Text)
		if len(e.Args) > 0 {
			fmt.Fprintf(&b, " %q", e.Args)
		}
		if e.Exit != nil {
			fmt.Fprintf(&b, " exit %d", *e.Exit)
		}
		if e.Output != "" {
			fmt.Fprintf(&b, ": %s", e.Output)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func progressOf(st api.JobStatus) run.Progress {
	return run.Progress{Step: st.Progress.Step, Done: st.Progress.Done, Total: st.Progress.Total, Rate: st.Progress.Rate}
}

// stopJob stops whatever job of a pass still runs, after an abort.
func (a *Activities) stopJob(ctx context.Context, b *beat, in run.PhaseInput) (run.PhaseOutput, error) {
	s, err := a.connectPinned(ctx, b, in)
	switch {
	case gone(err):
		return run.PhaseOutput{Summary: "the boot is gone, and the job with it"}, nil
	case err != nil:
		return run.PhaseOutput{}, err
	}
	defer s.Close()
	for n := maxJobs; n >= 1; n-- { // the last one is the one that may run
		status, err := s.CancelJob(ctx, in.Facts.Rescue.BootID, jobKey(in, n))
		switch {
		case err == nil && status.State == api.JobCanceled:
			return run.PhaseOutput{Summary: "job stopped"}, nil
		case err != nil && fault.ClassOf(err) == fault.Transient:
			return run.PhaseOutput{}, err // out of reach: try again
		case gone(err):
			return run.PhaseOutput{Summary: "the boot is gone, and the job with it"}, nil
		}
		// Never started, or ended by itself.
	}
	return run.PhaseOutput{Summary: "no job was running"}, nil
}

// gone reports whether an error proves that the run's boot is gone. A machine
// that is out of reach may still be at work.
func gone(err error) bool {
	return fault.ClassOf(err) == fault.RescueLost && !errors.Is(err, rescue.ErrNotAnswering) && !errors.Is(err, rescue.ErrTransport)
}
