package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
)

// errCanceled is the cause when somebody asked for the job's end.
var errCanceled = errors.New("canceled")

// Run does the work of a job that Start has made, in this process. A key runs
// once. The outcome is in the job's status; the error is nil when it
// succeeded.
func (j *Jobs) Run(ctx context.Context, key string, work Work) error {
	return j.run(ctx, key, work, func() {})
}

// Do makes a job and does its work right here, for a person who waits for it.
func (j *Jobs) Do(ctx context.Context, key string, spec api.JobSpec, work Work) (api.JobStatus, error) {
	if err := errors.Join(CheckKey(key), checkSpec(spec)); err != nil {
		return api.JobStatus{}, err
	}
	starting, err := j.starting(ctx)
	if err != nil {
		return api.JobStatus{}, err
	}
	defer starting.release()
	if err := j.Idle(ctx); err != nil {
		return api.JobStatus{}, err
	}
	if err := j.create(key, spec); err != nil {
		return api.JobStatus{}, err
	}
	err = j.run(ctx, key, work, starting.release)
	status, lookErr := j.look(key)
	return status, errors.Join(err, lookErr)
}

// run calls begun when the job holds the machine's lock and its status says
// so, or when it is known that it never will.
func (j *Jobs) run(ctx context.Context, key string, work Work, begun func()) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	var spec api.JobSpec
	if err := get(j.dir(key, "spec"), &spec); err != nil {
		return unknown(key, err)
	}
	r, err := j.begin(key, spec)
	if err != nil {
		return err
	}
	// A key runs once, so nobody needs the secrets in the spec any more.
	if err := put(j.dir(key, "spec"), spec.WithoutSecrets()); err != nil {
		return r.end(nil, api.JobResult{}, fault.Retry("the files of job %q cannot be written: %w", key, err))
	}
	held, err := takeLock(ctx, j.machineLock(), lockWait)
	if err != nil {
		return r.end(nil, api.JobResult{}, fault.Retry("job %q cannot have the machine for itself: %w", key, err))
	}
	defer held.release()
	if err := errors.Join(held.write(key), put(r.path, r.status)); err != nil {
		return r.end(nil, api.JobResult{}, fault.Retry("the files of job %q cannot be written: %w", key, err))
	}
	begun()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go watchCancel(ctx, cancel, j.dir(key, "cancel"))
	result, err := work(ctx, j.host, spec, r)
	return r.end(context.Cause(ctx), result, err)
}

// begin marks the job as begun, which happens once, and opens its log.
func (j *Jobs) begin(key string, spec api.JobSpec) (*recorder, error) {
	bootID, err := j.host.BootID()
	if err != nil {
		return nil, err
	}
	begun, err := os.OpenFile(j.dir(key, "begun"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fault.Operator("start the work again under a new key", "job %q has begun before: %w", key, err)
	}
	_, pidErr := fmt.Fprintln(begun, os.Getpid())
	log, err := os.OpenFile(j.dir(key, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err := errors.Join(err, pidErr, begun.Close()); err != nil {
		return nil, fault.Retry("the files of job %q cannot be written: %w", key, err)
	}
	r := &recorder{path: j.dir(key, "status"), log: log}
	r.status = api.JobStatus{Key: key, Kind: spec.Kind, BootID: bootID, State: api.JobRunning, Started: time.Now().UTC()}
	return r, nil
}

// watchCancel ends the context when the file appears. A file and no signal,
// so that it works for a job in any process.
func watchCancel(ctx context.Context, cancel context.CancelCauseFunc, path string) {
	for pause.For(ctx, cancelTick) == nil {
		if exists(path) {
			cancel(errCanceled)
			return
		}
	}
}

// recorder is the Reporter that writes a job's status and log.
type recorder struct {
	path string

	mu     sync.Mutex
	status api.JobStatus
	log    io.WriteCloser
}

var _ report.Reporter = (*recorder)(nil)

// Progress replaces where the job is.
func (r *recorder) Progress(p api.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Progress = p
	_ = put(r.path, r.status) // RAM is full: the job itself will say so
}

// Log appends an entry in one write.
func (r *recorder) Log(e api.LogEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(e)
}

func (r *recorder) write(e api.LogEntry) {
	if line, err := json.Marshal(e); err == nil {
		_, _ = r.log.Write(append(line, '\n'))
	}
}

// end writes the job's last status. The work's own error is told unless it
// was stopped: then the cause is.
func (r *recorder) end(cause error, result api.JobResult, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.status
	switch {
	case err == nil:
		s.State, s.Result = api.JobSucceeded, &result
	case cause != nil:
		s.State = api.JobCanceled
		err = fault.New(stoppedClass(cause), "start the work again under a new key", "job %q was stopped (%w); its last word: %v", s.Key, cause, err)
	default:
		s.State = api.JobFailed
	}
	if err != nil {
		s.Error = api.ErrorFrom(err)
		// Who reads the log alone must not take it for that of a job at work.
		r.write(api.LogEntry{At: time.Now().UTC(), Event: string(s.State), Text: s.Error.Message})
	}
	s.Ended = time.Now().UTC()
	if writeErr := errors.Join(r.log.Close(), put(r.path, *s)); writeErr != nil {
		return errors.Join(err, fault.Retry("the outcome of job %q cannot be written: %w", s.Key, writeErr))
	}
	return err
}

// stoppedClass tells a person's wish from a signal, which a system that shuts
// down sends to everybody: the work may go on, here or on the next boot.
func stoppedClass(cause error) fault.Class {
	if errors.Is(cause, errCanceled) {
		return fault.Aborted
	}
	return fault.Transient
}
